// Evaluates the conditions of the table on demand, because few nodes have one of its operators.
#include "verify/judge/known_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

#include "graft/error.hpp"
#include "onnx/functions.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::verify {
namespace {

/// The generated table of known faults. The empty entry at the end allows a table without faults.
constexpr auto faults = std::to_array<KnownFault>({
#include "verify/judge/known_faults.inc"
    {},
});

/// The maximum number of nodes that a search from a value to its inputs visits on one path.
constexpr int longest_look = 8;

/// Returns whether a value is computed from constants only. Follows the inputs for at most `steps` nodes on a path. If
/// a path is longer, returns `beyond`; the default is true, so that such a node counts as faulty and the other engine
/// is used.
bool is_of_constants(const onnx::Value& value, bool beyond = true, int steps = longest_look) {
  if (value.constant()) return true;
  if (steps == 0) return beyond;
  const onnx::Node* producer = value.producer;
  return producer != nullptr && !has_trait(*producer, onnx::trait::random) &&
         std::all_of(producer->inputs.begin(), producer->inputs.end(), [&](const onnx::Value* input) {
           return input == nullptr || is_of_constants(*input, beyond, steps - 1);
         });
}

bool is_dynamic(const onnx::Value& value) {
  return !value.shape ||
         std::any_of(value.shape->begin(), value.shape->end(), [](const Dim& dim) { return !dim.is_constant(); });
}

/// Returns whether an If, Loop or Scan computes a value, directly or followed by at most `steps` nodes that move data.
bool is_of_control_flow(const onnx::Value& value, int steps = longest_look) {
  const onnx::Node* producer = value.producer;
  if (producer == nullptr || steps == 0) return false;
  if (producer->is("If") || producer->is("Loop") || producer->is("Scan")) return true;
  if (!has_trait(*producer, onnx::trait::moves_data) || producer->inputs.empty()) return false;
  const onnx::Value* moved = producer->inputs.front();
  return moved != nullptr && is_of_control_flow(*moved, steps - 1);
}

std::string text_of_attribute(const onnx::Node& node, std::string_view name) {
  const onnx::NodeAttribute* attribute = node.attribute(name);
  if (attribute == nullptr) return "absent";
  if (const auto* integer = attribute->get<std::int64_t>()) return std::to_string(*integer);
  if (const auto* number = attribute->get<float>()) return fmt::format("{:g}", *number);
  if (const auto* text = attribute->get<std::string>()) return *text;
  return "";
}

/// Returns the number in parentheses after `word`: 1 for the text "type(1)" and the word "type". Returns nothing for
/// any other text.
std::optional<std::size_t> input_in(std::string_view text, std::string_view word) {
  if (!text.starts_with(word) || text.size() < word.size() + 3 || text[word.size()] != '(' || !text.ends_with(')')) {
    return std::nullopt;
  }
  std::size_t index = 0;
  const char* end = text.data() + text.size() - 1;
  const auto read = std::from_chars(text.data() + word.size() + 1, end, index);
  return read.ec == std::errc{} && read.ptr == end ? std::optional(index) : std::nullopt;
}

/// Returns whether a size of input 0 times the scale in input `scales` is not an integer for some axis. Returns nothing
/// if that depends on unknown sizes or scales.
std::optional<bool> has_fraction(const onnx::Node& node, std::size_t scales) {
  const onnx::Value* input = node.input(0);
  const std::optional<onnx::TensorData> constant = node.input(scales)->constant();
  const std::optional<std::vector<double>> numbers = constant ? constant->numbers() : std::nullopt;
  if (!numbers || input == nullptr || !input->shape || input->shape->size() != numbers->size()) {
    return std::nullopt;
  }
  constexpr double rounding = 1e-3;  // The allowance for the rounding of scales to f32.
  bool depends = false;
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    if (!(*input->shape)[i].is_constant()) {
      depends = depends || (*numbers)[i] != std::round((*numbers)[i]);
      continue;
    }
    const double size = static_cast<double>((*input->shape)[i].value()) * (*numbers)[i];
    if (std::abs(size - std::round(size)) > rounding) return true;
  }
  return depends ? std::nullopt : std::optional(false);
}

/// Returns whether `literal`, one test of a condition (see holds_of), is true for a node, or may be true because a
/// size, type or rank is unknown.
bool literal_holds(std::string_view literal, const onnx::Node& node) {
  const std::size_t equals = literal.find('=');
  const std::string_view left = literal.substr(0, equals);
  const std::string_view right = equals == std::string_view::npos ? "" : literal.substr(equals + 1);
  if (const auto index = input_in(left, "given")) return node.input(*index) != nullptr;
  if (const auto index = input_in(left, "constant")) {
    return node.input(*index) != nullptr && is_of_constants(*node.input(*index));
  }
  if (const auto index = input_in(left, "computed")) {
    return node.input(*index) != nullptr && !is_of_constants(*node.input(*index));
  }
  if (const auto index = input_in(left, "dynamic")) {
    return node.input(*index) != nullptr && is_dynamic(*node.input(*index));
  }
  if (const auto index = input_in(left, "control")) {
    return node.input(*index) != nullptr && is_of_control_flow(*node.input(*index));
  }
  if (const auto index = input_in(left, "fraction")) {
    return node.input(*index) != nullptr && has_fraction(node, *index).value_or(true);
  }
  if (const auto index = input_in(left, "type")) {
    const onnx::Value* input = node.input(*index);
    return input != nullptr && (!input->type || to_string(*input->type) == right);
  }
  if (const auto index = input_in(left, "rank")) {
    const onnx::Value* input = node.input(*index);
    return input != nullptr && (!input->rank() || std::to_string(*input->rank()) == right);
  }
  return text_of_attribute(node, left) == right;
}

/// Returns the tests of a condition (see holds_of), which are separated by ", ".
std::vector<std::string_view> literals_of(std::string_view condition) {
  constexpr std::string_view between = ", ";
  std::vector<std::string_view> literals;
  while (!condition.empty()) {
    const std::size_t end = condition.find(between);
    literals.push_back(condition.substr(0, end));
    condition = end == std::string_view::npos ? "" : condition.substr(end + between.size());
  }
  return literals;
}

/// Returns a clause for messages that describes `literal`, a test of a condition that is true for a node, such as
/// "input 1 ('boxes') is not a constant". If the test is only possibly true, the clause says so.
std::string clause_of(std::string_view literal, const onnx::Node& node) {
  const std::size_t equals = literal.find('=');
  const std::string_view left = literal.substr(0, equals);
  const std::string_view right = equals == std::string_view::npos ? "" : literal.substr(equals + 1);
  const auto input = [&](std::size_t index) { return fmt::format("input {} ('{}')", index, node.input(index)->name); };
  if (const auto index = input_in(left, "given")) return input(*index) + " is connected";
  if (const auto index = input_in(left, "constant")) {
    const bool is_known = is_of_constants(*node.input(*index), false);
    return fmt::format("{} {} computed from constants only", input(*index), is_known ? "is" : "may be");
  }
  if (const auto index = input_in(left, "computed")) return input(*index) + " is not a constant";
  if (const auto index = input_in(left, "dynamic")) {
    return fmt::format("a size of {} is not fixed in the model", input(*index));
  }
  if (const auto index = input_in(left, "control")) {
    return fmt::format("an If, Loop or Scan computes {}", input(*index));
  }
  if (const auto index = input_in(left, "fraction")) {
    return fmt::format("the sizes of {} times the scales, {}, {} integers", input(0), input(*index),
                       has_fraction(node, *index) ? "are not" : "may not be");
  }
  if (const auto index = input_in(left, "type")) {
    return fmt::format("{} {} the type {}", input(*index), node.input(*index)->type ? "has" : "may have", right);
  }
  if (const auto index = input_in(left, "rank")) {
    return fmt::format("{} {} {} dimension{}", input(*index), node.input(*index)->rank() ? "has" : "may have", right,
                       right == "1" ? "" : "s");
  }
  return right == "absent" ? fmt::format("`{}` is not set", left) : fmt::format("`{}` is {}", left, right);
}

/// Returns a description of a fault for a node: what the engine computes wrongly, under which condition, and in which
/// version that was found.
std::string description_of(const KnownFault& fault, const onnx::Node& node) {
  const bool has_wrong_shape = fault.evidence.find(": shape (") != std::string_view::npos;
  std::string text = has_wrong_shape ? "its output has a wrong shape" : "its values are wrong";
  const std::vector<std::string_view> literals = literals_of(fault.condition);
  for (std::size_t i = 0; i < literals.size(); ++i) {
    text += i == 0 ? " where " : i + 1 == literals.size() ? " and " : ", ";
    text += clause_of(literals[i], node);
  }
  return fmt::format("{} (found in {} {})", text, fault.engine, fault.version);
}

}  // namespace

std::span<const KnownFault> known_fault_table() { return std::span(faults).first(faults.size() - 1); }

bool holds_of(std::string_view condition, const onnx::Node& node) {
  const std::vector<std::string_view> literals = literals_of(condition);
  return std::all_of(literals.begin(), literals.end(),
                     [&](std::string_view literal) { return literal_holds(literal, node); });
}

KnownFaults::KnownFaults(std::span<const KnownFault> table) {
  for (const KnownFault& fault : table) by_operator_[fault.op].push_back(fault);
}

std::string KnownFaults::of(const onnx::Node& node, std::string_view engine) const {
  if (!node.domain.empty()) return "";
  const auto found = by_operator_.find(node.op_type);
  if (found == by_operator_.end()) return "";
  for (const KnownFault& fault : found->second) {
    if (!engine.starts_with(fault.engine) || !holds_of(fault.condition, node)) continue;
    return fmt::format("{}, which {} is known to compute wrongly: {}", onnx::describe(node), fault.engine,
                       description_of(fault, node));
  }
  return "";
}

std::string KnownFaults::first_of(const onnx::Graph& graph, std::string_view engine) const {
  std::string found;
  graph.for_each_node([&](const onnx::Node& node) {
    if (found.empty()) found = of(node, engine);
  });
  return found;
}

std::string KnownFaults::of(const onnx::Model& model, std::string_view engine) const {
  return of(model, std::span(&engine, 1)).front();
}

std::vector<std::string> KnownFaults::of(const onnx::Model& model, std::span<const std::string_view> engines) const {
  std::vector<std::string> found(engines.size());
  bool is_certain = true;
  model.graph().for_each_node([&](const onnx::Node& node) {
    is_certain =
        is_certain && node.domain.empty() &&
        std::all_of(engines.begin(), engines.end(), [&](std::string_view engine) { return of(node, engine).empty(); });
  });
  if (is_certain) return found;
  onnx::Model opened = model.clone();
  try {
    inline_functions(opened);
    attach_functions(opened);
    inline_functions(opened);
    infer_shapes(opened);
  } catch (const Error&) {
    // No engine runs such a model, and the engine reports why, for example that a node of a function lacks an input.
    return found;
  }
  std::transform(engines.begin(), engines.end(), found.begin(),
                 [&](std::string_view engine) { return first_of(opened.graph(), engine); });
  return found;
}

const KnownFaults& known_faults() {
  static const KnownFaults of_table(known_fault_table());
  return of_table;
}

}  // namespace graft::verify
