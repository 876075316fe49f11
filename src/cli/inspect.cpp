// graft inspect: how each node will run in TensorRT, by rule or by asking TensorRT.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/ask_tensorrt.hpp"
#include "cli/inspect_page.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/verdicts.hpp"
#include "graft/error.hpp"
#include "graph/faults.hpp"
#include "graph/operator_node.hpp"
#include "passes/pipeline.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  ModelArguments model;
  TruthOptions truth;
  std::string report;
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
Forecast forecast_for(const Console& console, const Model& model) {
  Model converted = model.clone();
  hide_faults(converted);
  ConvertOptions options;
  options.prove = false;
  model.graph().for_each_node([&](const Node& node) { options.prove = options.prove || find_operator_for(node); });
  ConvertReport report;
  try {
    report = convert(converted, options);
  } catch (const Error& error) {
    console.warn(
        fmt::format("`graft convert` refuses the model, so nothing is said of what it would make: {}", error.what()));
  }
  Forecast forecast;
  for (const Rewrite& rewrite : report.rewrites) {
    const std::string what = rewrite.pass == "remove_dead"
                                 ? "no output needs it: `graft convert` takes it away"
                                 : fmt::format("`graft convert` makes {} of it", rewrite.replacement);
    for (const std::string& node : rewrite.nodes) forecast.becomes.emplace(node, what);
  }
  for (const std::string& warning : report.warnings) console.warn(warning);
  for (const Rewrite& rewrite : report.undone) forecast.stays.insert(rewrite.nodes.begin(), rewrite.nodes.end());
  return forecast;
}

/// A Constant is a part of the nodes that read it; there is nothing to say of one that is native.
bool is_mere_constant(const NodeVerdict& node) { return node.op == "Constant" && node.verdict == Verdict::native; }

/// "135 nodes and 96 constants"
std::string nodes_text(const std::vector<NodeVerdict>& nodes) {
  const auto constants = static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), is_mere_constant));
  const std::string text = count_text(nodes.size() - constants, "node");
  return constants == 0 ? text : fmt::format("{} and {}", text, count_text(constants, "constant"));
}

void print_counts(const Console& console, const std::vector<NodeVerdict>& nodes) {
  Table table;
  for (const Verdict verdict : all_verdicts) {
    const auto count = std::count_if(nodes.begin(), nodes.end(), [&](const NodeVerdict& node) {
      return node.verdict == verdict && !is_mere_constant(node);
    });
    if (count == 0 && is_by_tensorrt(verdict)) continue;
    table.add({{std::string(name_of(verdict)), count == 0 ? Colour::faint : colour_of(verdict)},
               {fmt::format("{:>5}", count), count == 0 ? Colour::faint : Colour::strong},
               {std::string(meaning_of(verdict)), Colour::faint}});
  }
  console.print(table);
}

/// Nodes with the same verdict for the same reason.
struct Group {
  const NodeVerdict* first = nullptr;
  std::vector<const NodeVerdict*> nodes;
};

std::vector<Group> grouped(const std::vector<NodeVerdict>& nodes, bool every_node) {
  std::vector<Group> groups;
  for (const NodeVerdict& node : nodes) {
    if (is_mere_constant(node)) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.first->verdict == node.verdict && group.first->reason == node.reason;
    });
    if (same != groups.end() && !every_node) {
      same->nodes.push_back(&node);
    } else {
      groups.push_back({&node, {&node}});
    }
  }
  return groups;
}

/// "3 Conv, 1 Relu"
std::string operators_text(const Group& group) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const NodeVerdict* node : group.nodes) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == node->op; });
    if (same == counts.end()) {
      counts.emplace_back(node->op, 1);
    } else {
      ++same->second;
    }
  }
  std::string text;
  for (const auto& [op, count] : counts) {
    text += text.empty() ? "" : ", ";
    text += count == 1 ? op : fmt::format("{} {}", count, op);
  }
  return text;
}

std::string names_text(const Group& group) {
  constexpr std::size_t few = 4;
  std::string text;
  for (std::size_t i = 0; i < group.nodes.size() && i < few; ++i) text += (i == 0 ? "" : ", ") + group.nodes[i]->node;
  return group.nodes.size() <= few ? text : fmt::format("{} and {} more", text, group.nodes.size() - few);
}

/// What there is something to say of; the rest, which is plainly native, on one line. With -v every node.
void print_nodes(const Console& console, const std::vector<NodeVerdict>& nodes) {
  Table plain;
  for (const Group& group : grouped(nodes, console.verbose)) {
    const NodeVerdict& judged = *group.first;
    if (judged.reason.empty()) {
      plain.add({std::string(name_of(judged.verdict)), {operators_text(group), Colour::faint}});
      continue;
    }
    Table table;
    const Cell verdict(std::string(name_of(judged.verdict)), colour_of(judged.verdict));
    table.add({verdict, {operators_text(group) + "  " + names_text(group), Colour::strong}});
    table.add({"", judged.reason});
    if ((is_bad(judged.verdict) || !judged.cause.empty()) && !judged.advice.empty())
      table.add({"", {"what to do: " + judged.advice, Colour::faint}});
    console.print();
    console.print(table);
  }
  if (plain.empty()) return;
  console.print();
  console.print(plain);
}

/// A plugin that TensorRT makes of a node, from other values than the model has.
void warn_of_fields(const Console& console, const std::vector<NodeVerdict>& nodes) {
  for (const NodeVerdict& node : nodes) {
    if (node.verdict != Verdict::plugin || node.cause.empty()) continue;
    console.warn(fmt::format("node '{}' ({}): {}\n{}", node.node, node.op, node.reason, node.advice));
  }
}

report::Report page_of(const Model& model, const std::vector<NodeVerdict>& nodes, const Arguments& arguments,
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
  check_report(options.report);
  check_truth_options(options.truth);
  const InputShapes shapes = input_shapes(arguments);
  Origin origin;
  Model model = read(arguments, shapes, &origin);
  infer_and_note_faults(model, shapes);
  warn_of_missing_ranks(console, model);
  std::vector<NodeVerdict> nodes = judge_nodes(model, forecast_for(console, model));
  TruthAnswer truth;
  if (options.truth.level != "rule") truth = ask_tensorrt(console, model, options.truth, nodes);

  bool runs = true;
  Json listed = Json::array();
  Json counts = Json::object();
  for (const Verdict verdict : all_verdicts) counts[std::string(name_of(verdict))] = 0;
  for (const NodeVerdict& node : nodes) {
    runs = runs && !is_bad(node.verdict);
    counts[std::string(name_of(node.verdict))] = counts[std::string(name_of(node.verdict))].get<int>() + 1;
    listed.push_back({{"node", node.node},
                      {"operator", node.op},
                      {"verdict", name_of(node.verdict)},
                      {"reason", node.reason},
                      {"advice", node.advice},
                      {"truth", node.truth},
                      {"tensorrt", node.tensorrt},
                      {"plugin", node.plugin},
                      {"cause", node.cause},
                      {"as", node.as}});
  }
  const std::string was = origin_text(origin);
  console.print(fmt::format("{}: {}opset {}, {}", console.paint(arguments.model, Colour::strong),
                            was.empty() ? "" : was + "; as ONNX: ", model.graph().opset(), nodes_text(nodes)));
  console.print(table_of_ends(model));
  console.print();
  print_counts(console, nodes);
  print_nodes(console, nodes);
  warn_of_fields(console, nodes);
  for (const std::string& line : truth.lines) console.print(line);
  if (!options.report.empty()) write_report(console, page_of(model, nodes, options, was), options.report);
  Json result = {{"schema", "graft.inspect"},
                 {"version", 2},
                 {"model", arguments.model},
                 {"opset", model.graph().opset()},
                 {"runs", runs}};
  result.update(truth.facts);
  result.update(json_of_ends(model));
  result.update(json_of_origin(origin));
  result.update({{"counts", counts}, {"nodes", listed}});
  console.result(result);
  return runs ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_inspect(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "inspect",
      "a model's inputs and outputs, and how each node will run in TensorRT: native, lowered, plugin or unsupported; "
      "asked, TensorRT itself says refused, fails, hangs or crashes, and behind such a node perhaps not asked. Exit "
      "code 1 if a node does not run",
      "graft inspect digits.onnx\n"
      "  graft inspect digits.onnx --truth builder --shapes image=1x1x8x8..8x1x8x8..64x1x8x8\n"
      "  graft inspect model.onnx --truth parser --plugin-lib libmine.so --reduce smallest.onnx",
      [arguments](const Console& c) { return inspect(c, *arguments); });
  add_model_files(*command, arguments->model);
  add_input_shapes(*command, arguments->model);
  add_kept_outputs(*command, arguments->model);
  add_truth_options(*command, arguments->truth);
  add_report_option(*command, arguments->report, "the network, coloured by verdict, and every node with the reason");
}

}  // namespace graft::cli
