// Attributes by name, constant inputs by their place.
#include "verify/node_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "graph/text.hpp"
#include "verify/compare.hpp"
#include "verify/rearrangement.hpp"

namespace graft {
namespace {

std::string full_name(const Node& node) {
  return node.domain.empty() ? node.op_type : node.domain + "::" + node.op_type;
}

std::string text_of(const TensorData& tensor) {
  return fmt::format("{}[{}]", to_string(tensor.type), fmt::join(tensor.dims, ", "));
}

std::string said_of(const Node& node, const std::string& attribute) {
  const auto found = node.attributes.find(attribute);
  if (found == node.attributes.end()) return "not given";
  constexpr std::size_t longest = 80;
  const std::string text = to_text(found->second);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

void compare_attributes(const Node& reference, const Node& candidate, std::vector<std::string>& found) {
  std::set<std::string> names;
  for (const Node* node : {&reference, &candidate}) {
    for (const auto& [name, attribute] : node->attributes) {
      const std::string_view kind = attribute.kind();
      if (kind != "graph" && kind != "graphs") names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const std::string left = said_of(reference, name);
    const std::string right = said_of(candidate, name);
    if (left != right)
      found.push_back(fmt::format("attribute {}: {} in the reference, {} in the candidate", name, left, right));
  }
}

std::string input_text(const Value* value, const std::optional<TensorData>& constant) {
  if (value == nullptr) return "absent";
  return constant ? "the constant " + text_of(*constant) : fmt::format("the calculated '{}'", value->name);
}

/// What a weight of one is in the other: the order or the factor, where that explains it.
std::string weight_text(const TensorData& reference, const TensorData& candidate) {
  const Tolerance rounding = [&] {
    const Tolerance left = Tolerance::of_rewrite(reference.type);
    const Tolerance right = Tolerance::of_rewrite(candidate.type);
    return left.relative > right.relative ? left : right;
  }();
  const Difference difference =
      compare(reference, candidate, reference.type == candidate.type ? Tolerance{} : rounding);
  if (difference.equal()) return "";
  std::string text;
  if (const auto order = find_rearrangement(reference, candidate, rounding)) {
    text = order->text + "; ";
  } else if (const auto scale = find_scale(reference, candidate, rounding)) {
    text = *scale + "; ";
  }
  return text + difference.to_string();
}

void compare_inputs(const Node& reference, const Node& candidate, std::vector<std::string>& found) {
  const std::size_t count = std::max(reference.inputs.size(), candidate.inputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Value* left = reference.input(i);
    const Value* right = candidate.input(i);
    const auto expected = left == nullptr ? std::nullopt : left->constant();
    const auto given = right == nullptr ? std::nullopt : right->constant();
    if (expected && given) {
      const std::string text = weight_text(*expected, *given);
      if (!text.empty()) found.push_back(fmt::format("constant '{}' (input {}): {}", right->name, i, text));
      continue;
    }
    const bool is_another = (left == nullptr) != (right == nullptr) || expected.has_value() != given.has_value();
    if (is_another) {
      found.push_back(fmt::format("input {}: {} in the reference, {} in the candidate", i, input_text(left, expected),
                                  input_text(right, given)));
    }
  }
}

void compare_types(const Node& reference, const Node& candidate, std::vector<std::string>& found) {
  for (std::size_t i = 0; i < std::min(reference.outputs.size(), candidate.outputs.size()); ++i) {
    const Value* left = reference.outputs[i];
    const Value* right = candidate.outputs[i];
    if (left == nullptr || right == nullptr || !left->type || !right->type || left->type == right->type) continue;
    found.push_back(
        fmt::format("type: {} in the reference, {} in the candidate", to_string(*left->type), to_string(*right->type)));
  }
}

}  // namespace

std::vector<std::string> node_differences(const Node& reference, const Node& candidate) {
  if (full_name(reference) != full_name(candidate)) {
    return {
        fmt::format("operator: {} in the reference, {} in the candidate", full_name(reference), full_name(candidate))};
  }
  std::vector<std::string> found;
  compare_attributes(reference, candidate, found);
  compare_inputs(reference, candidate, found);
  compare_types(reference, candidate, found);
  return found;
}

std::optional<std::vector<std::string>> part_differences(const std::vector<const Node*>& reference,
                                                         const std::vector<const Node*>& candidate) {
  if (reference.size() != candidate.size()) return std::nullopt;
  if (reference.size() == 1) return node_differences(*reference.front(), *candidate.front());
  std::vector<std::string> found;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (full_name(*reference[i]) != full_name(*candidate[i])) return std::nullopt;
    for (const std::string& text : node_differences(*reference[i], *candidate[i])) {
      found.push_back(fmt::format("{}: {}", describe(*candidate[i]), text));
    }
  }
  return found;
}

}  // namespace graft
