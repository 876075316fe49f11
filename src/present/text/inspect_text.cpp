// The nodes of a group (see core/verdict_groups.hpp) share a paragraph.
#include "present/text/inspect_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "core/shell_quoted.hpp"
#include "core/verdict_groups.hpp"
#include "present/text/model_text.hpp"
#include "present/text/next_steps_text.hpp"
#include "present/text/verdict_text.hpp"

namespace graft::present {
namespace {

using report::FailingPart;
using report::VerdictGroup;
using report::VerdictGroups;

/// Returns the number of nodes with each verdict.
Table counts_table(const report::InspectReport& report) {
  const std::vector<report::NodeSupport>& nodes = report.nodes;
  // A count of 0 beside nodes that TensorRT refuses would say that Graft runs these.
  const bool does_tensorrt_refuse =
      std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return report::is_by_tensorrt(node.support); });
  Table table;
  for (const report::Support verdict : report::all_supports) {
    const auto count = std::count_if(nodes.begin(), nodes.end(), [&](const report::NodeSupport& node) {
      return node.support == verdict && !report::is_mere_constant(node);
    });
    if (count == 0 && (report::is_by_tensorrt(verdict) || report::is_open(verdict))) continue;
    if (count == 0 && verdict == report::Support::unsupported && does_tensorrt_refuse) continue;
    table.add({{std::string(to_string(verdict)), count == 0 ? Color::faint : color_of(verdict)},
               {fmt::format("{:>5}", count), count == 0 ? Color::faint : Color::strong},
               {meaning_of(verdict, report.is_judged_by_rules(), report.release_title()), Color::faint}});
  }
  return table;
}

/// Returns the operators of a group with their counts: "3 Conv, Relu".
std::string operators_text(const VerdictGroup& group) {
  constexpr std::size_t few = 12;
  const auto counts = report::count_operators(group);
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
  for (std::size_t i = 0; i < group.nodes.size() && i < few; ++i)
    text += (i == 0 ? "" : ", ") + group.nodes[i]->node.name;
  return group.nodes.size() <= few ? text : fmt::format("{} and {} more", text, group.nodes.size() - few);
}

/// Returns the beginning of a long message of TensorRT.
std::string beginning_of(const std::string& text) {
  constexpr std::size_t longest = 500;
  return text.size() <= longest ? text : text.substr(0, text.find_last_of(' ', longest)) + " ...";
}

Table group_table(const VerdictGroup& group, bool whole) {
  const report::NodeSupport& judged = group.first();
  Table table;
  const Cell verdict(std::string(to_string(judged.support)), color_of(judged.support));
  table.add({verdict, {operators_text(group) + "  " + names_text(group), Color::strong}});
  std::string reason = whole ? judged.reason : beginning_of(judged.reason);
  if (const std::size_t reasons = report::count_reasons(group); reasons > 1) {
    reason = fmt::format("the first reason: {} (--all lists the other {})", reason, reasons - 1);
  }
  table.add({"", reason});
  if (!judged.advice.empty()) {
    const bool is_problem = report::is_problem(judged);
    table.add({"",
               {(is_problem                            ? "what to do: "
                 : judged.advice.starts_with("graft ") ? "by "
                                                       : "") +
                    judged.advice,
                Color::faint}});
  }
  return table;
}

Listing nodes_listing(const std::vector<report::NodeSupport>& nodes, bool all) {
  constexpr std::size_t few_problems = 8;
  constexpr std::size_t few_others = 4;
  const VerdictGroups groups = report::group_verdicts(nodes, all);
  Listing listing;
  const auto add = [&](const std::vector<VerdictGroup>& list, std::size_t few, const auto& fits) {
    std::vector<VerdictGroup> some;
    std::ranges::copy_if(list, std::back_inserter(some), [&](const auto& group) { return fits(group.first()); });
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (all || i < few) {
        listing.add("");
        listing.add(group_table(some[i], all));
      } else {
        left_out += some[i].nodes.size();
      }
    }
    if (left_out == 0) return;
    listing.add("");
    listing.add(fmt::format("and {} more, for {} other reasons: --all shows them", count_text(left_out, "node"),
                            some.size() - few));
  };
  // The nodes that need most attention come first. The groups of a list keep their order.
  const auto is_open = [](const report::NodeSupport& node) { return report::is_open(node.support); };
  const auto is_native = [](const report::NodeSupport& node) { return node.support == report::Support::native; };
  add(groups.problems, few_problems, std::not_fn(is_open));
  add(groups.others, few_others, std::not_fn(is_native));
  add(groups.problems, few_problems, is_open);
  add(groups.others, few_others, is_native);
  if (groups.plain.empty()) return listing;
  Table plain;
  for (const VerdictGroup& group : groups.plain) {
    plain.add({std::string(to_string(group.first().support)),
               {all ? group.first().op + "  " + group.first().node.name : operators_text(group), Color::faint}});
  }
  listing.add("");
  listing.add(std::move(plain));
  return listing;
}

std::vector<std::string> names_of(const std::vector<NodeRef>& nodes) {
  std::vector<std::string> names;
  for (const NodeRef& node : nodes) names.push_back(node.name);
  return names;
}

std::string few_names(const std::vector<NodeRef>& nodes) {
  constexpr std::size_t few = 8;
  std::vector<std::string> names = names_of(nodes);
  names.resize(std::min(few, names.size()));
  const std::string text = fmt::format("{}", fmt::join(names, ", "));
  return nodes.size() <= few ? text : fmt::format("{} and {} more", text, nodes.size() - few);
}

Listing::Line line_of(const FailingPart& part) {
  const std::string who = part.nodes.size() == 1
                              ? describe(part.failing_node())
                              : fmt::format("these nodes together ({})", fmt::join(names_of(part.nodes), ", "));
  std::string rest =
      fmt::format(": {}; {}: {}", count_text(part.node_count, "node"), who, report::what_happened(part.support));
  if (part.inside) rest += fmt::format(", inside {}", describe(part.nodes.front()));
  if (!part.alike.empty()) rest += fmt::format("; {} similar parts: {}", part.alike.size(), few_names(part.alike));
  for (std::size_t i = 0; i < part.shapes.size(); ++i) {
    rest += fmt::format("{} --shapes {}", i == 0 ? ";" : "", shell_argument(part.shapes[i]));
  }
  return {{"wrote "}, {part.file.string(), Color::strong}, {std::move(rest)}};
}

/// Returns the operators of the nodes in a fusion: "InstanceNormalization, Relu"; many of them as "9 Mul, Add, ...".
std::string replaced_operators(const report::Fusion& fusion) {
  constexpr std::size_t few = 6;
  std::vector<std::string> operators;
  for (const NodeRef& node : fusion.nodes) operators.push_back(node.op);
  if (operators.size() <= few) return fmt::format("{}", fmt::join(operators, ", "));
  const std::size_t all = operators.size();
  operators.resize(few);
  return fmt::format("{} and {} more", fmt::join(operators, ", "), all - few);
}

/// Returns a row for each kind of fusion: the number of these fusions, the nodes that each replaces, and the operator
/// that replaces them.
Table fusions_table(const std::vector<report::Fusion>& fusions) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const report::Fusion& fusion : fusions) {
    std::string kind = fmt::format("{} -> {}{}", replaced_operators(fusion), operator_of(fusion),
                                   fusion.plugin.empty() ? "" : ", as a plugin");
    const auto same = std::ranges::find(kinds, kind, &std::pair<std::string, std::size_t>::first);
    if (same == kinds.end()) {
      kinds.emplace_back(std::move(kind), 1);
    } else {
      ++same->second;
    }
  }
  Table table;
  for (const auto& [kind, count] : kinds) {
    table.add({{"fused by `graft convert`", Color::faint}, count_text(count, "time"), kind});
  }
  return table;
}

/// Returns the release whose rules were applied, and the source of these rules.
std::string release_text(const report::TensorRTIdentity& release) {
  return fmt::format("for {}, {}", release.title(),
                     release.flavor == "rtx" ? "as measured with this release"
                                             : "as public documents state; this release was not run");
}

/// Returns the first sets of shapes for which the model did not build: " for x=1x3..4x3..8x3, nor for 4 more sets".
std::string failing_shapes_text(const std::vector<std::string>& sets) {
  constexpr std::size_t few = 2;
  std::string text;
  for (std::size_t i = 0; i < sets.size() && i < few; ++i) {
    text += fmt::format("{} {}", i == 0 ? " for" : ", nor for", sets[i]);
  }
  return sets.size() <= few ? text : fmt::format("{}, nor for {}", text, count_text(sets.size() - few, "more set"));
}

}  // namespace

std::string operator_of(const report::Fusion& fusion) {
  return fusion.replacement.substr(0, fusion.replacement.find('<'));
}

std::string fusions_text(const std::vector<report::Fusion>& fusions) {
  std::size_t nodes = 0;
  std::map<std::string, std::size_t> operators;
  for (const report::Fusion& fusion : fusions) {
    nodes += fusion.nodes.size();
    ++operators[operator_of(fusion)];
  }
  std::string text;
  for (const auto& [op, count] : operators) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, op);
  return fmt::format("{} to {}", count_text(nodes, "node"), text);
}

std::string built_shapes_text(const report::ProbeSummary& answer) {
  std::string text = answer.shapes.empty() ? "" : fmt::format(" for {}", fmt::join(answer.shapes, ", "));
  if (!answer.failing_shapes.empty()) text += ", but not" + failing_shapes_text(answer.failing_shapes);
  return text;
}

std::string answered_by(const report::InspectReport& report) {
  if (!report.probe) {
    return fmt::format("judged by Graft's rules for {}, and nothing was built: {}", report.rules.title(),
                       report.not_asked);
  }
  const report::ProbeSummary& answer = *report.probe;
  const std::string who = answer.tensorrt.title();
  const char* const what = answer.of_converted ? "the result of `graft convert`" : "the model";
  if (answer.built) return fmt::format("{} built {}{}", who, what, built_shapes_text(answer));
  if (!answer.not_built.empty()) {
    return fmt::format("{} parsed {}, and did not build it: {}", who, what, answer.not_built);
  }
  if (answer.judge == report::Judge::parser) {
    return fmt::format("{} parsed the model, and the build was not tried: --probe builder tries the build", who);
  }
  return fmt::format("{} did not build {}{}", who, what, failing_shapes_text(answer.failing_shapes));
}

Listing inspect_text(const report::InspectReport& report, bool all) {
  const std::string origin = origin_text(report.origin);
  Listing listing;
  listing.add({{report.file.string(), Color::strong},
               {fmt::format(": {}opset {}, {}, {} of weights", origin.empty() ? "" : origin + "; as ONNX: ",
                            report.opset, nodes_text(report.node_counts), bytes_text(report.weight_bytes))}});
  listing.add(io_table(report.inputs, report.outputs));
  listing.add("");
  if (!report.release.empty()) listing.add(release_text(report.rules));
  listing.add(counts_table(report));
  if (!report.fusions.empty()) {
    listing.add("");
    listing.add(fusions_table(report.fusions));
  }
  listing.append(nodes_listing(report.nodes, all));
  if (const Table next = next_table(next_commands(report)); !next.empty()) {
    listing.add("");
    listing.add(next);
  }
  return listing;
}

std::vector<std::string> plugin_warnings(const report::InspectReport& report) {
  std::vector<std::string> warnings;
  for (const report::NodeSupport& node : report.nodes) {
    if (node.support != report::Support::plugin || node.cause.empty()) continue;
    warnings.push_back(fmt::format("node '{}' ({}): {}\n{}", node.node.name, node.op, node.reason, node.advice));
  }
  return warnings;
}

Listing probe_text(const report::InspectReport& report) {
  Listing listing;
  listing.add("");
  listing.add(answered_by(report));
  if (!report.probe) return listing;
  const report::ProbeSummary& answer = *report.probe;
  for (const FailingPart& part : answer.reduced) listing.add(line_of(part));
  if (!answer.not_reduced.empty()) {
    listing.add(fmt::format(
        "not written: {}; at most {} files are written: fix the nodes in these files and inspect the model again",
        few_names(answer.not_reduced), report::most_reduced));
  }
  if (answer.unanswered > 0) {
    listing.add(fmt::format("the budget is used up, and {} not judged: --max-builds and --max-seconds allow more",
                            answer.unanswered == 1 ? "1 node is" : fmt::format("{} nodes are", answer.unanswered)));
  }
  if (answer.pieces > 1) {
    listing.add(fmt::format("the accepted nodes were built in {} separate parts, and not all together", answer.pieces));
  }
  const std::string parses = answer.trials.parses == 0 ? "" : count_text(answer.trials.parses, "parse") + ", ";
  listing.add(fmt::format("{} ran: {}{}, {}, {:.1f} s", answer.tensorrt.title(), parses,
                          count_text(answer.trials.builds, "build"),
                          count_text(answer.trials.processes, "process", "processes"), answer.trials.seconds));
  if (report.converted_node_counts && !answer.of_converted) {
    // TensorRT judged the given model, but engines are built from the converted model.
    listing.add(
        fmt::format("the original model was judged, with {}; its conversion has {}: --convert judges the conversion",
                    nodes_text(report.node_counts), nodes_text(*report.converted_node_counts)));
  }
  return listing;
}

std::string nothing_reduced_text(const report::InspectReport& report, const std::string& file) {
  const auto bad = std::count_if(report.nodes.begin(), report.nodes.end(),
                                 [](const report::NodeSupport& node) { return report::is_bad(node.support); });
  return fmt::format(
      "--reduce {}: nothing is written, because TensorRT{} accepts the whole model{}", file,
      report.probe->judge == report::Judge::parser ? "'s parser" : "",
      bad == 0 ? ""
               : fmt::format("; by the rules, its builder does not accept {}: --probe builder runs the builder",
                             count_text(static_cast<std::size_t>(bad), "node")));
}

}  // namespace graft::present
