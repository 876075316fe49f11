// graft convert: rewrites a model so that TensorRT can run it, and says what was done and why.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/dimensions.hpp"
#include "cli/interrupts.hpp"
#include "cli/program.hpp"
#include "cli/suggest.hpp"
#include "graft/error.hpp"
#include "graph/onnx_io.hpp"
#include "passes/pipeline.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  std::string model;
  std::string output;
  std::vector<std::string> inputs;
  std::vector<std::string> passes;
  std::string plugins = "auto";
  bool explain = false;
  bool no_prove = false;
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
                    {"proof", rewrite.proof}});
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
    choices.push_back(
        {{"node", choice.node}, {"operator", choice.op}, {"kind", to_string(choice.kind)}, {"reason", choice.reason}});
  }
  return {{"passes", passes},
          {"rewrites", to_json(report.rewrites)},
          {"undone", to_json(report.undone)},
          {"near_misses", near_misses},
          {"choices", choices},
          {"proofs_run", report.proofs_run},
          {"proofs_reused", report.proofs_reused}};
}

/// What most people want to know: the fusions, not the cleaning up.
void say_rewrites(const Console& console, const ConvertReport& report) {
  Table table;
  for (const PassSummary& pass : report.passes) {
    if (pass.rewrites == 0) continue;
    // A network repeats itself, and so would these lines.
    std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> lines;
    for (const Rewrite& rewrite : report.rewrites) {
      if (rewrite.pass != pass.pass) continue;
      if (rewrite.proof.empty() && pass.rewrites > 1) {
        table.add({{pass.pass, Colour::strong}, count_text(pass.rewrites, "change")});
        break;
      }
      const std::pair line{fmt::format("{} -> {}", nodes_text(rewrite, console.verbose), rewrite.replacement),
                           rewrite.proof};
      const auto same =
          std::find_if(lines.begin(), lines.end(), [&](const auto& other) { return other.first == line; });
      if (same == lines.end()) {
        lines.emplace_back(line, 1);
      } else {
        ++same->second;
      }
    }
    for (const auto& [line, count] : lines) {
      const bool first = &line == &lines.front().first;
      table.add({{first ? pass.pass : "", Colour::strong},
                 count == 1 ? line.first : fmt::format("{}, {} times", line.first, count)});
      if (!line.second.empty()) table.add({"", {"proof: " + line.second, Colour::faint}});
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
  Table table;
  for (const auto& [choice, count] : groups) {
    const bool plugin = choice->kind == OperatorChoice::Kind::plugin;
    table.add({{std::string(to_string(choice->kind)), plugin ? Colour::good : Colour::none},
               count == 1 ? choice->node : fmt::format("{} nodes ({})", count, choice->op),
               choice->reason});
  }
  console.say();
  console.say("In TensorRT");
  console.say(table);
}

void say_explanation(const Console& console, const ConvertReport& report) {
  for (const PassSummary& pass : report.passes) {
    console.print();
    console.print(fmt::format("{}  {}", console.paint(pass.pass, Colour::strong), pass.why));
    Table table;
    for (const Rewrite& rewrite : report.rewrites) {
      if (rewrite.pass != pass.pass) continue;
      table.add({{"done", Colour::good}, fmt::format("{} -> {}", nodes_text(rewrite, true), rewrite.replacement)});
      table.add({"", {rewrite.reason, Colour::faint}});
      if (!rewrite.proof.empty()) table.add({"", {"proof: " + rewrite.proof, Colour::faint}});
    }
    for (const Rewrite& rewrite : report.undone) {
      if (rewrite.pass != pass.pass) continue;
      table.add(
          {{"not done", Colour::caution}, fmt::format("{} -> {}", nodes_text(rewrite, true), rewrite.replacement)});
      table.add({"", {rewrite.proof, Colour::faint}});
    }
    for (const NearMissNote& near : report.near_misses) {
      if (near.pass != pass.pass) continue;
      table.add({{"nearly", Colour::faint},
                 fmt::format("{} at {}, {} matched", near.pattern, near.node, count_text(near.matched_nodes, "node"))});
      table.add({"", {near.reason, Colour::faint}});
    }
    if (table.empty()) table.add({{"nothing to do", Colour::faint}});
    console.print(table);
  }
}

Exit convert_model(const Console& console, const Arguments& arguments) {
  ConvertOptions options;
  options.prove = !arguments.no_prove;
  options.plugins = arguments.plugins == "always"  ? PluginMode::always
                    : arguments.plugins == "never" ? PluginMode::never
                                                   : PluginMode::automatic;
  choose_passes(arguments.passes, options);
  for (const auto& [name, sizes] : parse_shapes("--input", arguments.inputs, true)) {
    Shape shape;
    for (const std::int64_t size : sizes) shape.push_back(size < 0 ? unknown_dim() : Dim(size));
    options.input_shapes.emplace(name, std::move(shape));
  }
  Model model = read_onnx(arguments.model);
  const std::size_t before = model.graph().node_count();
  const ConvertReport report = convert(model, options);
  {
    const DeferInterrupts defer;
    write_onnx(model, arguments.output);
  }

  const std::size_t after = model.graph().node_count();
  console.say(fmt::format("wrote {}: {} before, {} after, {}", console.paint(arguments.output, Colour::strong),
                          count_text(before, "node"), after,
                          options.prove ? count_text(report.proofs_run, "proof") : std::string("nothing proven")));
  if (arguments.explain) {
    say_explanation(console, report);
  } else {
    say_rewrites(console, report);
  }
  say_choices(console, report);
  for (const Rewrite& rewrite : report.undone) {
    console.warn(fmt::format("{}: not done at {}: {}", rewrite.pass, nodes_text(rewrite, false), rewrite.proof));
  }
  Json result = {
      {"model", arguments.model}, {"output", arguments.output}, {"nodes_before", before}, {"nodes_after", after}};
  result.update(to_json(report));
  console.result(result);
  return Exit::done;
}

}  // namespace

void add_convert(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "convert", "rewrites an ONNX model so that TensorRT can run it, and proves on the CPU that nothing changed",
      "graft convert digits.onnx -o digits.graft.onnx",
      [arguments](const Console& c) { return convert_model(c, *arguments); });
  command->add_option("MODEL", arguments->model, "an ONNX model")->required();
  command->add_option("-o,--output", arguments->output, "the ONNX model to write")->type_name("FILE")->required();
  command
      ->add_option("--input", arguments->inputs,
                   "shape of an input, in place of the file's, NAME:1x3x224x224 with ? for an open size; once for each")
      ->type_name("SHAPE");
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
  command->add_flag("--explain", arguments->explain, "what each pass matched, what it nearly matched, and why not");
  command->add_flag("--no-prove", arguments->no_prove, "rewrite without running anything");
}

}  // namespace graft::cli
