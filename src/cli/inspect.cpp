// graft inspect: how each node will run in TensorRT, by rule or by asking TensorRT.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/ask_tensorrt.hpp"
#include "cli/inspect_page.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/verdict_style.hpp"
#include "graft/error.hpp"
#include "graph/faults.hpp"
#include "graph/operator_node.hpp"
#include "graph/plugin_reason.hpp"
#include "graph/shape_inference.hpp"
#include "inspect/verdicts.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  ModelArguments model;
  ProbeOptions truth;
  std::string report;
  bool all = false;      ///< Every node is printed.
  bool convert = false;  ///< What `graft convert` makes of the model is inspected.
};

/// Infers types and shapes, and notes on a node what is wrong with it, so that it is judged like any other.
void infer_and_note_faults(Model& model, const InputShapes& shapes) {
  const auto note = [&](Node& node, const Error& error) {
    node.metadata[std::string(fault_note)] = fmt::format("{}: {}", model.source, error.what());
  };
  infer_around_faults(model, shapes, note);
  model.graph().for_each_node([&](Node& node) {
    try {
      check_operator(node);
    } catch (const Error& error) {
      note(node, error);
    }
  });
}

/// A node with a fault becomes one that no pass knows.
void hide_faults(Model& model) {
  model.graph().for_each_node([](Node& node) {
    if (node.metadata.contains(fault_note)) node.domain = fault_note;
  });
}

/// Of fusions nothing is proven here, which may take long. The native form of an operator is tried, as it may hold for
/// some sizes alone.
ConvertReport convert_in_memory(Model& model) {
  const runtime::Engine& engine = runtime::default_engine();
  ConvertOptions options;
  options.prove = false;
  if (engine.can_run()) {
    std::as_const(model).graph().for_each_node(
        [&](const Node& node) { options.prove = options.prove || find_operator_for(node); });
  }
  return convert(engine, model, options);
}

/// Why a plugin gives a value of what `graft convert` made, by the name of the value.
std::map<std::string, std::string> plugin_reasons(const Model& converted) {
  std::map<std::string, std::string> reasons;
  converted.graph().for_each_node([&](const Node& node) {
    const auto reason = node.metadata.find(reason_note);
    if (reason != node.metadata.end() && node.output() != nullptr) reasons.emplace(node.output()->name, reason->second);
  });
  return reasons;
}

struct Prospect {
  inspect::Forecast forecast;
  std::size_t nodes = 0;  ///< Of the converted model.
};

Prospect prospect_of(const Console& console, const Model& model) {
  Model converted = model.clone();
  hide_faults(converted);
  ConvertReport report;
  try {
    report = convert_in_memory(converted);
  } catch (const Error& error) {
    console.warn(
        fmt::format("`graft convert` refuses the model, so nothing is said of what it would make: {}", error.what()));
  }
  Prospect prospect{.forecast = {}, .nodes = converted.graph().node_count()};
  const std::map<std::string, std::string> reasons = plugin_reasons(converted);
  std::map<std::string, std::string> plugins;  // of nodes whose output a plugin gives then: why a plugin
  model.graph().for_each_node([&](const Node& node) {
    const auto reason = node.output() == nullptr ? reasons.end() : reasons.find(node.output()->name);
    if (reason != reasons.end()) plugins.emplace(describe(node), reason->second);
  });
  for (const Rewrite& rewrite : report.rewrites) {
    std::string what = rewrite.pass == "remove_dead"
                           ? "no output needs it: `graft convert` takes it away"
                           : fmt::format("`graft convert` makes {} of it", rewrite.replacement);
    for (const std::string& node : rewrite.nodes) {
      const auto plugin = plugins.find(node);
      if (plugin == plugins.end()) continue;
      what += fmt::format(", as a plugin: {}", plugin->second);
      break;
    }
    for (const std::string& node : rewrite.nodes) prospect.forecast.becomes.emplace(node, what);
  }
  for (const std::string& warning : report.warnings) console.warn(warning);
  for (const Rewrite& rewrite : report.undone) {
    prospect.forecast.stays.insert(rewrite.nodes.begin(), rewrite.nodes.end());
  }
  return prospect;
}

/// A Constant is a part of the nodes that read it; there is nothing to say of one that is native.
bool is_mere_constant(const inspect::NodeVerdict& node) {
  return node.op == "Constant" && node.verdict == inspect::Verdict::native;
}

/// "135 nodes and 96 constants"
std::string nodes_text(const std::vector<inspect::NodeVerdict>& nodes) {
  const auto constants = static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), is_mere_constant));
  const std::string text = count_text(nodes.size() - constants, "node");
  return constants == 0 ? text : fmt::format("{} and {}", text, count_text(constants, "constant"));
}

void print_counts(const Console& console, const std::vector<inspect::NodeVerdict>& nodes) {
  Table table;
  for (const inspect::Verdict verdict : inspect::all_verdicts) {
    const auto count = std::count_if(nodes.begin(), nodes.end(), [&](const inspect::NodeVerdict& node) {
      return node.verdict == verdict && !is_mere_constant(node);
    });
    if (count == 0 && (inspect::is_by_tensorrt(verdict) || inspect::is_open(verdict))) continue;
    table.add({{std::string(inspect::name_of(verdict)), count == 0 ? Color::faint : color_of(verdict)},
               {fmt::format("{:>5}", count), count == 0 ? Color::faint : Color::strong},
               {std::string(inspect::meaning_of(verdict)), Color::faint}});
  }
  console.print(table);
}

/// Nodes of which one thing is said.
struct Group {
  std::vector<const inspect::NodeVerdict*> nodes;

  [[nodiscard]] const inspect::NodeVerdict& first() const { return *nodes.front(); }
};

bool is_problem(const inspect::NodeVerdict& node) {
  return inspect::is_bad(node.verdict) || inspect::is_open(node.verdict) || !node.cause.empty();
}

/// Problems go by operator, the rest by reason; with `every_node` each node is a group.
std::vector<Group> grouped(const std::vector<inspect::NodeVerdict>& nodes, bool every_node) {
  std::vector<Group> groups;
  std::map<std::tuple<inspect::Verdict, std::string, std::string>, std::size_t> index;
  for (const inspect::NodeVerdict& node : nodes) {
    if (is_mere_constant(node)) continue;
    const bool is_behind = node.verdict == inspect::Verdict::not_asked;
    const auto key = std::tuple(node.verdict, is_problem(node) ? (is_behind ? "-" : node.op) : "",
                                is_problem(node) ? "" : node.reason);
    const auto [found, is_new] = index.emplace(key, groups.size());
    if (is_new || every_node) {
      groups.push_back({{&node}});
    } else {
      groups[found->second].nodes.push_back(&node);
    }
  }
  return groups;
}

/// "3 Conv, 1 Relu"
std::string operators_text(const Group& group) {
  constexpr std::size_t few = 12;
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const inspect::NodeVerdict* node : group.nodes) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == node->op; });
    if (same == counts.end()) {
      counts.emplace_back(node->op, 1);
    } else {
      ++same->second;
    }
  }
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < counts.size() && i < few; ++i) {
    const auto& [op, count] = counts[i];
    text += text.empty() ? "" : ", ";
    text += count == 1 ? op : fmt::format("{} {}", count, op);
  }
  return counts.size() <= few ? text : fmt::format("{} and {} other operators", text, counts.size() - few);
}

std::string names_text(const Group& group) {
  constexpr std::size_t few = 4;
  std::string text;
  for (std::size_t i = 0; i < group.nodes.size() && i < few; ++i) text += (i == 0 ? "" : ", ") + group.nodes[i]->node;
  return group.nodes.size() <= few ? text : fmt::format("{} and {} more", text, group.nodes.size() - few);
}

std::size_t count_reasons(const Group& group) {
  std::set<std::string_view> reasons;
  for (const inspect::NodeVerdict* node : group.nodes) reasons.insert(node->reason);
  return reasons.size();
}

/// The beginning of what TensorRT said at length.
std::string beginning_of(const std::string& text) {
  constexpr std::size_t longest = 500;
  return text.size() <= longest ? text : text.substr(0, text.find_last_of(' ', longest)) + " ...";
}

void print_group(const Console& console, const Group& group, bool whole) {
  const inspect::NodeVerdict& judged = group.first();
  Table table;
  const Cell verdict(std::string(inspect::name_of(judged.verdict)), color_of(judged.verdict));
  table.add({verdict, {operators_text(group) + "  " + names_text(group), Color::strong}});
  std::string reason = whole ? judged.reason : beginning_of(judged.reason);
  if (const std::size_t reasons = count_reasons(group); reasons > 1) {
    reason = fmt::format("the first: {} ({} other reasons: --all)", reason, reasons - 1);
  }
  table.add({"", reason});
  if (is_problem(judged) && !judged.advice.empty()) {
    table.add({"", {"what to do: " + judged.advice, Color::faint}});
  }
  console.print();
  console.print(table);
}

/// Problems first, the worst before the others; then a little of what there is to say of the rest, and what is plainly
/// native, on one line. With `all` every node.
void print_nodes(const Console& console, const std::vector<inspect::NodeVerdict>& nodes, bool all) {
  constexpr std::size_t few_problems = 8;
  constexpr std::size_t few_others = 4;
  std::vector<Group> problems;
  std::vector<Group> others;
  Table plain;
  for (Group& group : grouped(nodes, all)) {
    if (is_problem(group.first())) {
      problems.push_back(std::move(group));
    } else if (group.first().reason.empty()) {
      plain.add({std::string(name_of(group.first().verdict)),
                 {all ? group.first().op + "  " + group.first().node : operators_text(group), Color::faint}});
    } else {
      others.push_back(std::move(group));
    }
  }
  if (!all) {
    std::stable_sort(problems.begin(), problems.end(), [](const Group& a, const Group& b) {
      const auto key = [](const Group& g) { return std::pair(g.first().verdict, g.nodes.size()); };
      return key(a) > key(b);
    });
    std::stable_sort(others.begin(), others.end(),
                     [](const Group& a, const Group& b) { return a.nodes.size() > b.nodes.size(); });
  } else {
    std::stable_sort(problems.begin(), problems.end(),
                     [](const Group& a, const Group& b) { return a.first().verdict > b.first().verdict; });
  }
  const auto print = [&](const std::vector<Group>& groups, std::size_t few) {
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (all || i < few) {
        print_group(console, groups[i], all);
      } else {
        left_out += groups[i].nodes.size();
      }
    }
    if (left_out == 0) return;
    console.print();
    console.print(fmt::format("and {} more, for {} other reasons: --all shows them", count_text(left_out, "node"),
                              groups.size() - few));
  };
  print(problems, few_problems);
  print(others, few_others);
  if (plain.empty()) return;
  console.print();
  console.print(plain);
}

/// A plugin that TensorRT makes of a node, from other values than the model has.
void warn_of_fields(const Console& console, const std::vector<inspect::NodeVerdict>& nodes) {
  for (const inspect::NodeVerdict& node : nodes) {
    if (node.verdict != inspect::Verdict::plugin || node.cause.empty()) continue;
    console.warn(fmt::format("node '{}' ({}): {}\n{}", node.node, node.op, node.reason, node.advice));
  }
}

/// TensorRT was asked about the model as it is, which is not the one that an engine is to be built from.
std::string advice_to_convert(const Model& model, const Prospect& prospect) {
  return fmt::format(
      "asked about the model as it is, of {}; `graft convert` makes {} of it: --convert asks about those",
      count_text(model.graph().node_count(), "node"), count_text(prospect.nodes, "node"));
}

report::Report page_of(const Model& model, const std::vector<inspect::NodeVerdict>& nodes, const Arguments& arguments,
                       const std::string& origin) {
  report::Report page = new_model_report("inspect", arguments.model.model);
  if (!origin.empty()) page.summary.push_back({"read", origin});
  page.summary.push_back({"opset", fmt::format("{}", model.graph().opset())});
  add_ends(page, model);
  page.sections.emplace_back(add_verdicts(page, model, nodes, "main graph"));
  return page;
}

Exit inspect(const Console& console, const Arguments& options) {
  const ModelArguments& arguments = options.model;
  check_files_apart(report_files(options.report), files_of(arguments));
  check_report(options.report);
  check_truth_options(options.truth);
  const InputShapes shapes = input_shapes(arguments);
  Origin origin;
  Model model = read(arguments, shapes, &origin);
  if (options.convert) {
    infer_shapes(model, shapes);
    convert_in_memory(model);
  }
  infer_and_note_faults(model, options.convert ? InputShapes() : shapes);
  warn_of_missing_ranks(console, model);
  const Prospect prospect = options.convert ? Prospect() : prospect_of(console, model);
  std::vector<inspect::NodeVerdict> nodes = inspect::judge_nodes(model, prospect.forecast);
  ProbeAnswer truth;
  if (options.truth.level != "rule") {
    truth = ask_tensorrt(console, model, options.truth, nodes);
    if (!prospect.forecast.becomes.empty()) truth.lines.push_back(advice_to_convert(model, prospect));
  }

  Json listed = Json::array();
  Json counts = Json::object();
  for (const inspect::Verdict verdict : inspect::all_verdicts) counts[std::string(inspect::name_of(verdict))] = 0;
  for (const inspect::NodeVerdict& node : nodes) {
    counts[std::string(inspect::name_of(node.verdict))] =
        counts[std::string(inspect::name_of(node.verdict))].get<int>() + 1;
    listed.push_back({{"node", node.node},
                      {"operator", node.op},
                      {"verdict", inspect::name_of(node.verdict)},
                      {"reason", node.reason},
                      {"advice", node.advice},
                      {"truth", node.truth},
                      {"tensorrt", node.tensorrt},
                      {"plugin", node.plugin},
                      {"cause", node.cause},
                      {"as", node.as}});
  }
  const std::string was = origin_text(origin);
  console.print(fmt::format("{}: {}opset {}, {}", console.paint(arguments.model, Color::strong),
                            was.empty() ? "" : was + "; as ONNX: ", model.graph().opset(), nodes_text(nodes)));
  console.print(table_of_ends(model));
  console.print();
  print_counts(console, nodes);
  print_nodes(console, nodes, options.all || console.verbose);
  warn_of_fields(console, nodes);
  for (const std::string& line : truth.lines) console.print(line);
  if (!options.report.empty()) write_report(console, page_of(model, nodes, options, was), options.report);
  Json result = {{"schema", "graft.inspect"},      {"version", 2},
                 {"model", arguments.model},       {"converted", options.convert},
                 {"opset", model.graph().opset()}, {"runs", json_of_runs(nodes)}};
  result.update(truth.facts);
  result.update(json_of_ends(model));
  result.update(json_of_origin(origin));
  result.update({{"counts", counts}, {"nodes", listed}});
  console.result(result);
  return inspect::runs(nodes).value_or(false) ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_inspect(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "inspect",
      "a model's inputs and outputs, and how each node will run in TensorRT: native, lowered, plugin, unsupported or "
      "unknown; "
      "asked, TensorRT itself says refused, fails, hangs or crashes, and behind such a node perhaps not asked. Exit "
      "code 1 if a node does not run",
      "graft inspect digits.onnx\n"
      "  graft inspect digits.onnx --truth builder --shapes image=1x1x8x8..8x1x8x8..64x1x8x8\n"
      "  graft inspect model.onnx --truth parser --plugin-lib libmine.so --reduce smallest.onnx",
      [arguments](const Console& c) { return inspect(c, *arguments); });
  add_model_files(*command, arguments->model);
  program.add_operators_option(*command);
  add_input_shapes(*command, arguments->model);
  add_kept_outputs(*command, arguments->model);
  command->add_flag("--convert", arguments->convert,
                    "inspect what `graft convert` makes of the model, in memory, with nothing proven");
  command->add_flag("--all", arguments->all, "every node, and not the problems and the rest by count");
  add_truth_options(*command, arguments->truth);
  add_report_option(*command, arguments->report, "the network, colored by verdict, and every node with the reason");
}

}  // namespace graft::cli
