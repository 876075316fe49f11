// Writes a line for the half that TensorRT runs and one for the half that the host runs.
#include "present/text/cut_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>

namespace graft::present {
namespace {

std::string quoted(const std::vector<std::string>& names) {
  return names.empty() ? "tensors that the host computes" : fmt::format("'{}'", fmt::join(names, "', '"));
}

/// Returns a share in percent. A share above 99.9 % is not rounded to 100 %.
std::string share_text(double share) { return share > 0.999 ? "over 99.9 %" : fmt::format("{:.1f} %", 100 * share); }

}  // namespace

std::string type_text(const toolkit::Port& port) {
  if (!port.shape) return port.type + " of unknown rank";
  std::vector<std::string> sizes;
  for (const std::int64_t size : *port.shape) sizes.push_back(size < 0 ? "?" : fmt::format("{}", size));
  return sizes.empty() ? port.type + " scalar" : fmt::format("{} {}", port.type, fmt::join(sizes, " x "));
}

std::string tensorrt_text(const toolkit::CutResult& result) {
  return fmt::format("{}, {} of the arithmetic", count_text(result.tensorrt.nodes, "node"),
                     share_text(result.share_in_tensorrt));
}

std::string host_text(const toolkit::CutResult& result) {
  return fmt::format("{}, {}", count_text(result.host.nodes, "node"),
                     result.host_refused.empty() ? "for ONNX Runtime" : "which ONNX Runtime refuses");
}

std::string tail_text(const toolkit::DetectionTail& tail) {
  if (tail.kind == toolkit::DetectionTail::Kind::best) {
    return fmt::format("boxes from {}, scores from {}: {} by score (TopK '{}')", quoted(tail.boxes),
                       quoted(tail.scores), tail.most ? fmt::format("the best {}", *tail.most) : "the best",
                       tail.node.name);
  }
  std::string text =
      fmt::format("boxes from {} ({}), scores from {}: non-maximum suppression ('{}')", quoted(tail.boxes),
                  tail.form == toolkit::DetectionTail::Boxes::corners ? "two corners" : "center and size",
                  quoted(tail.scores), tail.node.name);
  if (tail.overlap) text += fmt::format(", boxes that overlap by more than {:g} are removed", *tail.overlap);
  if (tail.lowest_score) text += fmt::format(", scores above {:g}", *tail.lowest_score);
  // The largest integer means that there is no limit.
  if (tail.most && *tail.most != std::numeric_limits<std::int64_t>::max()) {
    text += fmt::format(", at most {} per class", *tail.most);
  }
  return text;
}

std::string verified_text(const toolkit::CutResult& result) {
  if (!result.verified || result.verdict != toolkit::Verdict::same) return {};
  const std::string& engines = result.verified->ran_in;
  return fmt::format("both halves together equal the whole network, in {}, computed by {}{}",
                     count_text(result.verified->runs, "run"), engines,
                     engines == result.host_engine ? "" : ", the half for the host by " + result.host_engine);
}

std::string cut_title(const toolkit::CutResult& result) {
  std::set<std::string> operators;
  for (const toolkit::NodeSupport& cause : result.causes) operators.insert(cause.node.op);
  const auto wrong = std::count_if(result.causes.begin(), result.causes.end(), report::is_computed_wrongly);
  return fmt::format(
      "Cut {} {} that {}: {}", result.tensorrt_is_first ? "before" : "after", count_text(result.causes.size(), "node"),
      report::problem_text(result.causes.size(), static_cast<std::size_t>(wrong)), fmt::join(operators, ", "));
}

Table cut_table(const toolkit::CutResult& result) {
  std::vector<std::vector<Cell>> halves;
  halves.push_back({"TensorRT", result.tensorrt.file.string(), tensorrt_text(result)});
  halves.push_back({"the host", result.host.file.string(), host_text(result)});
  if (!result.tensorrt_is_first) std::swap(halves[0], halves[1]);
  Table table;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i].insert(halves[i].begin(), i == 0 ? "first" : "then");
    table.add(halves[i]);
  }
  for (std::size_t i = 0; i < result.between.size(); ++i) {
    table.add({i == 0 ? "between" : "", result.between[i].name, type_text(result.between[i])});
  }
  for (const toolkit::DetectionTail& tail : result.tails) table.add({"detects", "", tail_text(tail)});
  if (const std::string verified = verified_text(result); !verified.empty()) table.add({"verified", "", verified});
  if (result.verified) {
    for (const std::string& line : result.verified->left_out) table.add({"", "", {line, Color::caution}});
  }
  return table;
}

namespace {

/// Returns what is wrong with the result of the comparison, or an empty string.
std::string comparison_warning(const toolkit::CutResult& result) {
  if (result.verdict == toolkit::Verdict::nothing_compared) {
    return "the halves were run, and " + result.not_verified;
  }
  if (!result.not_verified.empty())
    return "the halves were not compared with the whole network: " + result.not_verified;
  if (!result.verified || result.verdict == toolkit::Verdict::same) return {};
  if (result.verdict == toolkit::Verdict::disputed) {
    return "the halves were run, but without a verdict: " + result.verified->dispute_text();
  }
  std::vector<std::string> wrong;
  for (const toolkit::ComparedOutput& output : result.verified->outputs) {
    if (output.verdict() == toolkit::Verdict::different) wrong.push_back(output.reference.name);
  }
  return fmt::format("the halves do not compute the same as the whole network: {}", fmt::join(wrong, ", "));
}

}  // namespace

std::string cut_warning(const toolkit::CutResult& result) {
  if (result.host_refused.empty()) return comparison_warning(result);
  std::string text =
      fmt::format("the half for the host is not ready, because ONNX Runtime refuses it: {}\n", result.host_refused);
  if (!result.host_engine.empty() && !result.verdict) {
    text += fmt::format("{} computed it here, and both halves together equal the whole network\n", result.host_engine);
  } else if (const std::string message = result.host_refused.substr(result.host_refused.find(": ") + 2);
             result.not_verified.find(message) == std::string::npos) {
    text += comparison_warning(result) + "\n";
  } else {
    text += "the halves were not compared with the whole network\n";
  }
  return text +
         "Run this half in a runtime that supports all its nodes, or in ONNX Runtime with a custom-operator library "
         "that contains these operators";
}

}  // namespace graft::present
