// Compares the indices of two models by the reference's scores at both indices.
#include "verify/compare/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "onnx/schema.hpp"
#include "verify/localize/layers.hpp"

namespace graft::verify {

std::optional<IndexChoice> choice_of(const onnx::Value& value) {
  const onnx::Value* indices = &value;
  const onnx::Node* node = value.producer;
  // A view keeps the position of each index, by which its scores are found.
  const auto keeps_places = [](const onnx::Node& n) { return has_trait(n, onnx::trait::view) || n.is("Cast"); };
  while (node != nullptr && keeps_places(*node)) {
    indices = node->input(0);
    node = indices == nullptr ? nullptr : indices->producer;
  }
  if (node == nullptr || node->input(0) == nullptr) return std::nullopt;
  if (node->is("ArgMax") || node->is("ArgMin")) {
    return IndexChoice{.scores = node->input(0), .axis = node->int_or("axis", 0)};
  }
  if (node->is("TopK") && node->outputs.size() > 1 && node->outputs[1] == indices) {
    return IndexChoice{.scores = node->input(0), .axis = node->int_or("axis", -1)};
  }
  return std::nullopt;
}

const onnx::TensorData& JudgedChoice::scores(const runtime::TensorMap& inputs,
                                             const runtime::TensorMap& computed) const {
  const std::string& name = choice.scores->name;
  return choice.scores->producer == nullptr ? inputs.at(name) : computed.at(name);
}

std::optional<JudgedChoice> judged_choice(const onnx::Model& reference, const onnx::Value& value,
                                          const NarrowTypes& reference_narrow, const NarrowTypes& candidate_narrow,
                                          const onnx::Value& candidate_value, bool quantized) {
  const auto choice = choice_of(value);
  if (!choice || reference.graph().find_local(choice->scores->name) != choice->scores) return std::nullopt;
  if (choice->scores->producer == nullptr && !choice->scores->is_input) return std::nullopt;
  const onnx::ElementType left = rounding_type(reference_narrow, *choice->scores, onnx::ElementType::f32);
  const onnx::ElementType right = rounding_type(candidate_narrow, candidate_value, onnx::ElementType::f32);
  if (left == right && !quantized) return std::nullopt;
  const Tolerance tolerance = layer_tolerance(left, right, quantized, false);
  return JudgedChoice{.choice = *choice, .share = tolerance.of_largest};
}

std::optional<std::string> judge_choice(const JudgedChoice& judged, const onnx::TensorData& scores,
                                        const onnx::TensorData& reference, const onnx::TensorData& candidate,
                                        Difference& difference) {
  const auto& [choice, share] = judged;
  const auto rank = static_cast<std::int64_t>(scores.dims.size());
  const std::int64_t axis = choice.axis < 0 ? choice.axis + rank : choice.axis;
  const auto numbers = scores.numbers();
  const auto expected = reference.ints();
  const auto found = candidate.ints();
  if (axis < 0 || axis >= rank || !numbers || !expected || !found) return std::nullopt;
  const std::int64_t size = scores.dims[static_cast<std::size_t>(axis)];
  std::int64_t inner = 1;
  for (std::int64_t i = axis + 1; i < rank; ++i) inner *= scores.dims[static_cast<std::size_t>(i)];
  const std::int64_t rows = size > 0 ? std::ssize(*numbers) / size : 0;
  if (reference.dims != candidate.dims || rows == 0 || std::ssize(*expected) % rows != 0) return std::nullopt;
  const std::int64_t of_row = inner * (std::ssize(*expected) / rows);  // TopK returns several indices per row

  std::int64_t excused = 0;
  double widest = 0;
  double widest_share = 0;
  for (std::int64_t i = 0; i < std::ssize(*expected); ++i) {
    const std::int64_t left = (*expected)[static_cast<std::size_t>(i)];
    const std::int64_t right = (*found)[static_cast<std::size_t>(i)];
    if (left == right) continue;
    if (std::min(left, right) < 0 || std::max(left, right) >= size) return std::nullopt;
    const auto score = [&](std::int64_t index) {
      return (*numbers)[static_cast<std::size_t>((i / of_row * size + index) * inner + i % inner)];
    };
    double largest = 0;
    for (std::int64_t index = 0; index < size; ++index) largest = std::max(largest, std::abs(score(index)));
    const double gap = std::abs(score(left) - score(right));
    if (!std::isfinite(gap) || !std::isfinite(largest)) return std::nullopt;
    if (gap <= 2 * share * largest) ++excused;
    const double gap_share = gap == 0 ? 0 : gap / largest;
    if (gap_share < widest_share) continue;
    widest = gap;
    widest_share = gap_share;
  }
  difference.mismatched -= excused;
  difference.within_noise += excused;
  difference.excess = widest_share / (2 * share);
  constexpr double percent = 100;
  return fmt::format(
      "indices: at the candidate's indices, the reference's scores differ by up to {:.2g} from {}, {:.2g} % of the "
      "largest score of the row; the limit is {:.2g} %",
      widest, of_row == inner ? "the best score" : "those at its own indices", percent * widest_share,
      percent * 2 * share);
}

}  // namespace graft::verify
