// graft inspect: how each node will run in TensorRT, by rule or by asking TensorRT.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ask_tensorrt.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "graft/error.hpp"
#include "graph/shape_inference.hpp"
#include "inspect/forecast.hpp"
#include "inspect/verdict_groups.hpp"
#include "inspect/verdicts.hpp"
#include "present/html/inspect_page.hpp"
#include "present/html/page.hpp"
#include "present/json/verdicts.hpp"
#include "present/text/verdict_color.hpp"
#include "runtime/default_engine.hpp"

namespace graft::cli {
namespace {

using inspect::VerdictGroup;
using inspect::VerdictGroups;

struct Arguments {
  ModelArguments model;
  ProbeOptions truth;
  std::string report;
  bool all = false;      ///< Every node is printed.
  bool convert = false;  ///< What `graft convert` makes of the model is inspected.
};

/// "135 nodes and 96 constants"
std::string nodes_text(const std::vector<inspect::NodeVerdict>& nodes) {
  const auto constants = static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), inspect::is_mere_constant));
  const std::string text = count_text(nodes.size() - constants, "node");
  return constants == 0 ? text : fmt::format("{} and {}", text, count_text(constants, "constant"));
}

void print_counts(const Console& console, const std::vector<inspect::NodeVerdict>& nodes) {
  Table table;
  for (const inspect::Verdict verdict : inspect::all_verdicts) {
    const auto count = std::count_if(nodes.begin(), nodes.end(), [&](const inspect::NodeVerdict& node) {
      return node.verdict == verdict && !inspect::is_mere_constant(node);
    });
    if (count == 0 && (inspect::is_by_tensorrt(verdict) || inspect::is_open(verdict))) continue;
    table.add({{std::string(inspect::name_of(verdict)), count == 0 ? Color::faint : present::color_of(verdict)},
               {fmt::format("{:>5}", count), count == 0 ? Color::faint : Color::strong},
               {std::string(inspect::meaning_of(verdict)), Color::faint}});
  }
  console.print(table);
}

/// "3 Conv, 1 Relu"
std::string operators_text(const VerdictGroup& group) {
  constexpr std::size_t few = 12;
  const auto counts = inspect::count_operators(group);
  std::string text;
  for (std::size_t i = 0; i < counts.size() && i < few; ++i) {
    const auto& [op, count] = counts[i];
    text += text.empty() ? "" : ", ";
    text += count == 1 ? op : fmt::format("{} {}", count, op);
  }
  return counts.size() <= few ? text : fmt::format("{} and {} other operators", text, counts.size() - few);
}

std::string names_text(const VerdictGroup& group) {
  constexpr std::size_t few = 4;
  std::string text;
  for (std::size_t i = 0; i < group.nodes.size() && i < few; ++i) text += (i == 0 ? "" : ", ") + group.nodes[i]->node;
  return group.nodes.size() <= few ? text : fmt::format("{} and {} more", text, group.nodes.size() - few);
}

/// The beginning of what TensorRT said at length.
std::string beginning_of(const std::string& text) {
  constexpr std::size_t longest = 500;
  return text.size() <= longest ? text : text.substr(0, text.find_last_of(' ', longest)) + " ...";
}

void print_group(const Console& console, const VerdictGroup& group, bool whole) {
  const inspect::NodeVerdict& judged = group.first();
  Table table;
  const Cell verdict(std::string(inspect::name_of(judged.verdict)), present::color_of(judged.verdict));
  table.add({verdict, {operators_text(group) + "  " + names_text(group), Color::strong}});
  std::string reason = whole ? judged.reason : beginning_of(judged.reason);
  if (const std::size_t reasons = inspect::count_reasons(group); reasons > 1) {
    reason = fmt::format("the first: {} ({} other reasons: --all)", reason, reasons - 1);
  }
  table.add({"", reason});
  if (inspect::is_problem(judged) && !judged.advice.empty()) {
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
  const VerdictGroups groups = inspect::group_verdicts(nodes, all);
  const auto print = [&](const std::vector<VerdictGroup>& some, std::size_t few) {
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (all || i < few) {
        print_group(console, some[i], all);
      } else {
        left_out += some[i].nodes.size();
      }
    }
    if (left_out == 0) return;
    console.print();
    console.print(fmt::format("and {} more, for {} other reasons: --all shows them", count_text(left_out, "node"),
                              some.size() - few));
  };
  print(groups.problems, few_problems);
  print(groups.others, few_others);
  if (groups.plain.empty()) return;
  Table plain;
  for (const VerdictGroup& group : groups.plain) {
    plain.add({std::string(inspect::name_of(group.first().verdict)),
               {all ? group.first().op + "  " + group.first().node : operators_text(group), Color::faint}});
  }
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
std::string advice_to_convert(const Model& model, const inspect::Prospect& prospect) {
  return fmt::format(
      "asked about the model as it is, of {}; `graft convert` makes {} of it: --convert asks about those",
      count_text(model.graph().node_count(), "node"), count_text(prospect.nodes, "node"));
}

report::Report page_of(const Model& model, const std::vector<inspect::NodeVerdict>& nodes, const Arguments& arguments,
                       const std::string& origin) {
  report::Report page = present::new_model_report("inspect", arguments.model.model);
  if (!origin.empty()) page.summary.push_back({"read", origin});
  page.summary.push_back({"opset", fmt::format("{}", model.graph().opset())});
  present::add_ends(page, model);
  page.sections.emplace_back(present::add_verdicts(page, model, nodes, "main graph"));
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
    inspect::convert_in_memory(runtime::default_engine(), model);
  }
  inspect::infer_and_note_faults(model, options.convert ? InputShapes() : shapes);
  warn_of_missing_ranks(console, model);
  const inspect::Prospect prospect =
      options.convert ? inspect::Prospect() : inspect::prospect_of(runtime::default_engine(), model);
  for (const std::string& warning : prospect.warnings) console.warn(warning);
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
                 {"opset", model.graph().opset()}, {"runs", present::json_of_runs(nodes)}};
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
      "  graft inspect digits.onnx --probe builder --shapes image=1x1x8x8..8x1x8x8..64x1x8x8\n"
      "  graft inspect model.onnx --probe parser --plugin-lib libmine.so --reduce smallest.onnx",
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
