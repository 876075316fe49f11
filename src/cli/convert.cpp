// graft convert: rewrites a model so that TensorRT can run it, and says what was done and why.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graph/atomic_file.hpp"
#include "graph/functions.hpp"
#include "graph/node_ref.hpp"
#include "graph/onnx_io.hpp"
#include "inspect/verdicts.hpp"
#include "passes/frozen_sizes.hpp"
#include "passes/pipeline.hpp"
#include "present/html/convert_page.hpp"
#include "present/json/verdicts.hpp"
#include "present/text/verdict_color.hpp"
#include "runtime/default_engine.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  ModelArguments model;
  std::string output;
  std::vector<std::string> passes;
  std::string plugins = "auto";
  std::string rules;
  std::string report;
  bool explain = false;
  bool no_prove = false;
  bool no_functions = false;
  bool prove_each = false;
};

/// `a,b` runs those alone; `-a` runs all but that one.
void choose_passes(const std::vector<std::string>& texts, ConvertOptions& options) {
  std::vector<std::string> known;
  for (const Pass& pass : pipeline()) known.emplace_back(pass.name);
  for (const std::string& text : texts) {
    const bool leave_out = text.starts_with('-');
    const std::string name = leave_out ? text.substr(1) : text;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string all;
      for (const std::string& pass : known) all += (all.empty() ? "" : ", ") + pass;
      const auto meant = nearest(name, known);
      throw Error(fmt::format("--passes: there is no pass {}; {}the passes are {}", name,
                              meant ? fmt::format("did you mean {}? ", *meant) : "", all));
    }
    (leave_out ? options.without : options.only).push_back(name);
  }
  if (!options.only.empty() && !options.without.empty()) {
    throw Error(
        "--passes: names with and without a minus\nEither name the passes to run, or those to leave out, as in "
        "--passes=-fuse_leaky_relu");
  }
}

std::string nodes_text(const Rewrite& rewrite, bool all) {
  std::string text;
  for (const std::string& node : rewrite.nodes) text += (text.empty() ? "" : ", ") + node;
  constexpr std::size_t few = 2;
  return all || rewrite.nodes.size() <= few ? text : count_text(rewrite.nodes.size(), "node");
}

Json to_json(const std::vector<Rewrite>& rewrites) {
  Json list = Json::array();
  for (const Rewrite& rewrite : rewrites) {
    list.push_back({{"pass", rewrite.pass},
                    {"nodes", rewrite.nodes},
                    {"replacement", rewrite.replacement},
                    {"reason", rewrite.reason},
                    {"proof", rewrite.proof},
                    {"proof_kind", to_string(rewrite.proof_kind)}});
  }
  return list;
}

Json to_json(const ConvertReport& report) {
  Json passes = Json::array();
  for (const PassSummary& pass : report.passes) {
    passes.push_back({{"pass", pass.pass}, {"why", pass.why}, {"rewrites", pass.rewrites}, {"seconds", pass.seconds}});
  }
  Json near_misses = Json::array();
  for (const NearMissNote& near : report.near_misses) {
    near_misses.push_back({{"pass", near.pass},
                           {"pattern", near.pattern},
                           {"node", near.node},
                           {"matched_nodes", near.matched_nodes},
                           {"reason", near.reason}});
  }
  Json choices = Json::array();
  for (const OperatorChoice& choice : report.choices) {
    choices.push_back({{"node", describe(choice.node)},
                       {"operator", choice.op},
                       {"kind", to_string(choice.kind)},
                       {"reason", choice.reason}});
  }
  Json rules = Json::array();
  for (const RuleOutcome& rule : report.rules) {
    rules.push_back({{"place", rule.place},
                     {"rule", rule.rule},
                     {"reason", rule.reason},
                     {"matched", rule.matched},
                     {"applied", rule.applied},
                     {"failed", rule.failed()},
                     {"notes", rule.notes}});
  }
  return {{"passes", passes},
          {"rules", rules},
          {"rewrites", to_json(report.rewrites)},
          {"undone", to_json(report.undone)},
          {"near_misses", near_misses},
          {"choices", choices},
          {"warnings", report.warnings},
          {"proofs_run", report.proofs_run},
          {"spot_checks", report.spot_checks},
          {"proofs_alike", report.proofs_alike},
          {"proofs_reused", report.proofs_reused}};
}

/// A line that stands for several rewrites alike: a network repeats itself.
struct Line {
  std::string text;
  std::string replacement;
  std::string proof;
  std::size_t nodes = 0;
  std::size_t count = 0;
};

/// "each proven", or "3 proven, 2 spot-checked, 15 alike to those".
std::string proofs_text(const std::vector<const Rewrite*>& rewrites) {
  std::size_t own = 0;
  std::size_t checked = 0;
  std::size_t alike = 0;
  for (const Rewrite* rewrite : rewrites) {
    own += rewrite->proof_kind == ProofKind::own ? 1U : 0U;
    checked += rewrite->proof_kind == ProofKind::spot_check ? 1U : 0U;
    alike += rewrite->proof_kind == ProofKind::one_of_a_kind ? 1U : 0U;
  }
  if (own == rewrites.size()) return "each proven";
  return fmt::format("{} proven, {} spot-checked, {} alike to those but for the values of weights", own, checked,
                     alike);
}

/// Of the passes that tidy up, how much they did; fusions with the same result in one line. With -v every rewrite.
std::vector<Line> lines_of(const ConvertReport& report, const PassSummary& pass, bool all) {
  std::vector<Line> lines;
  std::vector<std::vector<const Rewrite*>> of_lines;
  std::vector<const Rewrite*> proven;
  for (const Rewrite& rewrite : report.rewrites) {
    if (rewrite.pass != pass.pass) continue;
    if (!rewrite.proof.empty()) proven.push_back(&rewrite);
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return !all && line.replacement == rewrite.replacement && line.nodes == rewrite.nodes.size();
    });
    if (same == lines.end()) {
      lines.push_back({.text = fmt::format("{} -> {}", nodes_text(rewrite, all), rewrite.replacement),
                       .replacement = rewrite.replacement,
                       .proof = rewrite.proof,
                       .nodes = rewrite.nodes.size(),
                       .count = 1});
      of_lines.push_back({&rewrite});
    } else {
      ++same->count;
      of_lines[static_cast<std::size_t>(same - lines.begin())].push_back(&rewrite);
    }
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].count < 2 || lines[i].proof.empty()) continue;
    lines[i].proof = fmt::format("{}; the first: {}", proofs_text(of_lines[i]), lines[i].proof);
  }
  if (all || lines.size() <= 1) return lines;
  constexpr std::size_t few = 6;
  const std::string whole =
      count_text(pass.rewrites, "change") + (proven.size() == pass.rewrites ? ", " + proofs_text(proven) : "");
  if (present::tidies_up(pass.pass)) return {{.text = whole, .replacement = "", .proof = "", .nodes = 0, .count = 1}};
  if (lines.size() > few) {
    lines.resize(few);
    lines.push_back({.text = fmt::format("and more, {} in all; -v shows each", whole),
                     .replacement = "",
                     .proof = "",
                     .nodes = 0,
                     .count = 1});
  }
  return lines;
}

void say_rewrites(const Console& console, const ConvertReport& report) {
  Table table;
  for (const PassSummary& pass : report.passes) {
    if (pass.rewrites == 0) continue;
    bool first = true;
    for (const Line& line : lines_of(report, pass, console.verbose)) {
      table.add({{first ? pass.pass : "", Color::strong},
                 line.count == 1 ? line.text : fmt::format("{}, {} times", line.text, line.count)});
      if (!line.proof.empty()) table.add({"", {"proof: " + line.proof, Color::faint}});
      first = false;
    }
  }
  console.say(table);
}

void say_choices(const Console& console, const ConvertReport& report) {
  // Nodes that run alike for the same reason share a line.
  std::vector<std::pair<const OperatorChoice*, std::size_t>> groups;
  for (const OperatorChoice& choice : report.choices) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.first->kind == choice.kind && group.first->op == choice.op && group.first->reason == choice.reason;
    });
    if (same != groups.end() && !console.verbose) {
      ++same->second;
    } else {
      groups.emplace_back(&choice, 1);
    }
  }
  if (groups.empty()) return;
  constexpr std::size_t widest = 60;
  Table table;
  for (const auto& [choice, count] : groups) {
    const bool plugin = choice->kind == OperatorChoice::Kind::plugin;
    table.add({{std::string(to_string(choice->kind)), plugin ? Color::good : Color::none},
               count == 1 ? (console.verbose ? describe(choice->node) : shortened(describe(choice->node), widest))
                          : fmt::format("{} nodes ({})", count, choice->op),
               choice->reason});
  }
  console.say();
  console.say("In TensorRT");
  console.say(table);
}

void say_explanation(const Console& console, const ConvertReport& report) {
  for (const PassSummary& pass : report.passes) {
    console.print();
    console.print(fmt::format("{}  {}", console.paint(pass.pass, Color::strong), pass.why));
    Table table;
    for (const Rewrite& rewrite : report.rewrites) {
      if (rewrite.pass != pass.pass) continue;
      table.add({{"done", Color::good}, fmt::format("{} -> {}", nodes_text(rewrite, true), rewrite.replacement)});
      table.add({"", {rewrite.reason, Color::faint}});
      if (!rewrite.proof.empty()) table.add({"", {"proof: " + rewrite.proof, Color::faint}});
    }
    for (const Rewrite& rewrite : report.undone) {
      if (rewrite.pass != pass.pass) continue;
      table.add(
          {{"not done", Color::caution}, fmt::format("{} -> {}", nodes_text(rewrite, true), rewrite.replacement)});
      table.add({"", {rewrite.proof, Color::faint}});
    }
    for (const NearMissNote& near : report.near_misses) {
      if (near.pass != pass.pass) continue;
      table.add({{"nearly", Color::faint},
                 fmt::format("{} at {}, {} matched", near.pattern, near.node, count_text(near.matched_nodes, "node"))});
      table.add({"", {near.reason, Color::faint}});
    }
    if (table.empty()) table.add({{"nothing to do", Color::faint}});
    console.print(table);
  }
}

std::string outcome_text(const RuleOutcome& rule) {
  if (rule.matched == 0) return "matched nothing";
  if (rule.applied == rule.matched) return fmt::format("done, {}", count_text(rule.applied, "place"));
  return fmt::format("done in {} of {}", rule.applied, count_text(rule.matched, "place"));
}

void say_rules(const Console& console, const ConvertReport& report, bool explain) {
  if (report.rules.empty()) return;
  Table table;
  for (const RuleOutcome& rule : report.rules) {
    const Color color = rule.failed() ? Color::bad : rule.applied == 0 ? Color::caution : Color::good;
    table.add({rule.place, {outcome_text(rule), color}, rule.rule});
    if (!explain) continue;
    if (!rule.reason.empty()) table.add({"", "", {rule.reason, Color::faint}});
    for (const std::string& note : rule.notes) table.add({"", "", {note, Color::faint}});
  }
  console.say();
  console.say("Rules");
  console.say(table);
}

/// The answer is no where a rule that is not optional was not done everywhere.
Exit check_rules(const Console& console, const ConvertReport& report) {
  Exit exit = Exit::done;
  for (const RuleOutcome& rule : report.rules) {
    if (!rule.failed()) continue;
    exit = Exit::answer_is_no;
    std::string text = fmt::format("{}: {}: {}", rule.place, rule.rule, outcome_text(rule));
    for (const std::string& note : rule.notes) text += "\n" + note;
    console.error(text);
  }
  return exit;
}

/// "12 Conv2D, 3 BiasAdd", the most frequent first.
std::string operators_text(const std::map<std::string, std::size_t>& operators) {
  std::vector<std::pair<std::string, std::size_t>> sorted(operators.begin(), operators.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr std::size_t few = 12;
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < few; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", sorted[i].second, sorted[i].first);
  }
  return sorted.size() <= few ? text : fmt::format("{} and {} other kinds", text, sorted.size() - few);
}

/// What the reader of another format made of the file.
void say_origin(const Console& console, const Origin& origin) {
  Table table;
  table.add({{"read", Color::faint}, operators_text(origin.operators)});
  std::map<std::string, std::map<std::string, std::size_t>> reasons;
  for (const Origin::LeftOut& entry : origin.left_out) reasons[entry.why][entry.op] += entry.count;
  for (const auto& [why, operators] : reasons) {
    table.add({{"left out", Color::faint}, fmt::format("{}: {}", operators_text(operators), why)});
  }
  if (origin.renamed != 0) {
    table.add({{"renamed", Color::faint},
               fmt::format("{}: a layer that works in place gives its name to what comes out of it",
                           count_text(origin.renamed, "tensor"))});
  }
  console.say(table);
}

std::string count_of_proofs(const ConvertReport& report) {
  const std::size_t proofs = report.proofs_run - report.spot_checks;
  std::string text = proofs != 0 ? count_text(proofs, "proof") : "no rewrite needed a proof of its own";
  if (report.spot_checks + report.proofs_alike == 0) return text;
  return fmt::format("{}, {} and {} alike", text, count_text(report.spot_checks, "spot check"), report.proofs_alike);
}

std::uint64_t bytes_of_weights(const Model& model) {
  std::uint64_t bytes = 0;
  for (const Value* value : model.graph().initializers()) bytes += value->initializer->bytes.size();
  return bytes;
}

std::size_t count_of(const Model& model, std::string_view op) {
  std::size_t count = 0;
  model.graph().for_each_node([&](const Node& node) { count += node.is(op) ? 1 : 0; });
  return count;
}

/// Nodes of the written model with that verdict; those with the same reason and operator in one line.
void say_nodes(const Console& console, const std::vector<inspect::NodeVerdict>& nodes, inspect::Verdict verdict,
               std::string_view what) {
  if (nodes.empty()) return;
  Table table;
  std::vector<std::string> said;
  for (const inspect::NodeVerdict& node : nodes) {
    const std::string key = node.op + node.reason;
    if (std::find(said.begin(), said.end(), key) != said.end()) continue;
    said.push_back(key);
    std::vector<std::string> names;
    for (const inspect::NodeVerdict& other : nodes) {
      if (other.op + other.reason == key) names.push_back(other.node);
    }
    constexpr std::size_t few = 4;
    const std::size_t more = names.size() - std::min(few, names.size());
    names.resize(names.size() - more);
    table.add({{node.op, present::color_of(verdict)},
               fmt::format("{}{}", fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more))});
    table.add({"", node.reason});
    table.add({"", {"what to do: " + node.advice, Color::faint}});
  }
  console.say();
  console.say(console.paint(fmt::format("{} {}", count_text(nodes.size(), "node"), what), present::color_of(verdict)));
  console.say(table);
}

std::vector<inspect::NodeVerdict> nodes_with(inspect::Verdict verdict, std::vector<inspect::NodeVerdict> nodes) {
  std::erase_if(nodes, [&](const inspect::NodeVerdict& node) { return node.verdict != verdict; });
  return nodes;
}

Json json_of_nodes(const std::vector<inspect::NodeVerdict>& nodes) {
  Json listed = Json::array();
  for (const inspect::NodeVerdict& node : nodes) {
    listed.push_back({{"node", node.node}, {"operator", node.op}, {"reason", node.reason}, {"advice", node.advice}});
  }
  return listed;
}

/// Before minutes are spent on what cannot be written. The original stays: `graft verify` compares with it.
void check_output(const Arguments& arguments) {
  std::vector<NamedFile> written = report_files(arguments.report);
  written.push_back({"-o", arguments.output});
  check_files_apart(written, files_of(arguments.model, {{"the file of rules", arguments.rules}}));
  {
    const DeferInterrupts defer;
    const AtomicFile probe(arguments.output);
  }
  check_report(arguments.report);
}

/// What the file's own sizes left in a network that is read with dynamic ones.
std::vector<FrozenSize> frozen_sizes_of(const Model& model, const ModelArguments& arguments,
                                        const InputShapes& shapes) {
  return find_frozen_sizes(model, shapes, [&] {
    ModelArguments as_declared = arguments;
    as_declared.shapes.clear();
    return read(as_declared, {}, nullptr);
  });
}

/// What the file gains and loses by --no-functions.
void say_without_functions(const Console& console, std::size_t nodes) {
  console.say();
  if (nodes == 0) {
    console.say("--no-functions: the model has no node of Graft's operators, so nothing was left out");
    return;
  }
  console.say(fmt::format(
      "{} without {} ONNX function{}: TensorRT's own parser makes plugins of {}, with the plugin library loaded, and "
      "refuses the model without it. ONNX Runtime cannot run the file; graft can.",
      count_text(nodes, "node"), nodes == 1 ? "its" : "their", nodes == 1 ? "" : "s", nodes == 1 ? "it" : "them"));
}

Exit convert_model(const Console& console, const Arguments& arguments) {
  ConvertOptions options;
  if (!arguments.rules.empty()) options.rules = read_rules(arguments.rules);
  options.prove = !arguments.no_prove;
  options.prove_each = arguments.prove_each;
  options.plugins = arguments.plugins == "always"  ? PluginMode::always
                    : arguments.plugins == "never" ? PluginMode::never
                                                   : PluginMode::automatic;
  choose_passes(arguments.passes, options);
  options.input_shapes = input_shapes(arguments.model);
  check_output(arguments);
  Progress progress(console);
  options.progress = [&](std::string_view pass, std::size_t done, std::size_t total) {
    progress.update(pass, static_cast<double>(done + 1) / static_cast<double>(total + 1));
  };
  progress.update("reading " + arguments.model.model, 0);
  Origin origin;
  // Readers of other formats than ONNX need the shapes while they read.
  InputShapes reading_shapes = options.input_shapes;
  reading_shapes.merge(shapes_of(options.rules));
  const auto seconds_since = [](std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto start = std::chrono::steady_clock::now();
  Model model = read(arguments.model, reading_shapes, &origin);
  const double reading = seconds_since(start);
  const std::size_t before = model.graph().node_count();
  std::optional<present::ConvertPage> page;
  if (!arguments.report.empty()) page.emplace(arguments.model.model, model);
  const std::vector<FrozenSize> frozen = frozen_sizes_of(model, arguments.model, options.input_shapes);
  start = std::chrono::steady_clock::now();
  ConvertReport report = convert(runtime::default_engine(), model, options);
  const double rewriting = seconds_since(start) - report.proof_seconds;
  const std::size_t detached = arguments.no_functions ? detach_functions(model) : 0;
  start = std::chrono::steady_clock::now();
  std::optional<std::filesystem::path> data_file;
  {
    const DeferInterrupts defer;
    data_file = write_onnx(model, arguments.output);
  }
  const double writing = seconds_since(start);
  for (std::string& warning : frozen_size_warnings(frozen, report)) report.warnings.push_back(std::move(warning));
  progress.clear();
  warn_of_missing_ranks(console, model);
  const std::vector<inspect::NodeVerdict> verdicts = inspect::judge_nodes(model);
  const std::vector<inspect::NodeVerdict> unsupported = nodes_with(inspect::Verdict::unsupported, verdicts);
  const std::vector<inspect::NodeVerdict> unknown = nodes_with(inspect::Verdict::unknown, verdicts);
  console.detail(fmt::format("read in {:.2f} s, rewritten in {:.2f} s, proven in {:.2f} s, written in {:.2f} s",
                             reading, rewriting, report.proof_seconds, writing));

  const std::size_t after = model.graph().node_count();
  const std::uint64_t weights = bytes_of_weights(model);
  const std::size_t transposes = count_of(model, "Transpose");
  const std::string was = origin_text(origin);
  const std::string summary = fmt::format(
      "{}{} before, {} after, {}, {} of weights", was.empty() ? "" : was + ", as ONNX ", count_text(before, "node"),
      after, options.prove ? count_of_proofs(report) : std::string("nothing proven"), bytes_text(weights));
  console.say(fmt::format("wrote {}: {}", written_text(console, arguments.output, data_file), summary));
  if (page) write_report(console, page->finish(model, verdicts, report, summary), arguments.report);
  if (!was.empty()) {
    console.say(table_of_ends(model));
    say_origin(console, origin);
    for (const std::string& note : origin.notes) console.say("note: " + note);
  }
  if (arguments.explain) {
    say_explanation(console, report);
  } else {
    say_rewrites(console, report);
  }
  if (!was.empty()) console.say(fmt::format("  {} left", count_text(transposes, "transposition")));
  say_choices(console, report);
  say_rules(console, report, arguments.explain);
  if (arguments.no_functions) say_without_functions(console, detached);
  const Exit exit = check_rules(console, report);
  for (const std::string& warning : report.warnings) console.warn(warning);
  say_nodes(console, unsupported, inspect::Verdict::unsupported, "that neither TensorRT nor Graft runs");
  say_nodes(console, unknown, inspect::Verdict::unknown, "of which the rules do not know whether TensorRT runs them");
  for (const Rewrite& rewrite : report.undone) {
    if (rewrite.pass.starts_with("rules_")) continue;
    console.warn(fmt::format("{}: not done at {}: {}", rewrite.pass, nodes_text(rewrite, false), rewrite.proof));
  }
  Json result = {{"model", arguments.model.model}, {"output", arguments.output}, {"nodes_before", before},
                 {"nodes_after", after},           {"weight_bytes", weights},    {"transpositions", transposes}};
  result["external_data"] = json_of_data_file(data_file);
  result["nodes_without_function"] = detached;
  result.update(json_of_origin(origin));
  result.update(json_of_ends(model));
  result["seconds"] = {{"read", reading}, {"rewrite", rewriting}, {"prove", report.proof_seconds}, {"write", writing}};
  result.update(to_json(report));
  result.update({{"runs", present::json_of_runs(verdicts)},
                 {"unsupported", json_of_nodes(unsupported)},
                 {"unknown", json_of_nodes(unknown)}});
  console.result(result);
  return exit == Exit::done && inspect::runs(verdicts).value_or(false) ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_convert(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command("convert",
                                          "reads a model and rewrites it so that TensorRT can run it, and proves on "
                                          "the CPU that nothing changed; exit code "
                                          "1 if a node is left that nobody runs, or of which nobody knows",
                                          "graft convert digits.onnx -o digits.graft.onnx\n"
                                          "  graft convert frozen.pb -o model.onnx --input image:1x224x224x3\n"
                                          "  graft convert deploy.prototxt trained.caffemodel -o model.onnx",
                                          [arguments](const Console& c) { return convert_model(c, *arguments); });
  add_model_files(*command, arguments->model);
  program.add_operators_option(*command);
  command->add_option("-o,--output", arguments->output, "the ONNX model to write")->type_name("FILE")->required();
  add_input_shapes(*command, arguments->model);
  add_kept_outputs(*command, arguments->model);
  command
      ->add_option("--plugins", arguments->plugins,
                   "auto: a plugin where no native layer is exact and as fast; always; never (auto)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command
      ->add_option("--passes", arguments->passes,
                   "passes to run, joined by commas; with a minus before each, those to leave out: --passes=-NAME")
      ->type_name("LIST")
      ->delimiter(',');
  command
      ->add_option(
          "--rules", arguments->rules,
          "your own changes to the network, in YAML; exit code 1 where one could not be done (docs/guide/rules.md)")
      ->type_name("FILE");
  add_report_option(*command, arguments->report, "the network before and after, what was rewritten and why");
  command->add_flag("--explain", arguments->explain,
                    "what each pass and rule matched, what it nearly matched, and why not");
  command->add_flag("--no-prove", arguments->no_prove, "rewrite without running anything");
  command->add_flag("--prove-each", arguments->prove_each,
                    "prove also the rewrites that differ from a proven one in the values of weights alone");
  command->add_flag(
      "--no-functions", arguments->no_functions,
      "leave out the ONNX functions of Graft's nodes, which go before plugins in TensorRT's own parser: for "
      "trtexec --dynamicPlugins and TensorRT's Python; other runtimes, ONNX Runtime among them, cannot run "
      "such a file, and TensorRT needs the plugin library for it");
}

}  // namespace graft::cli
