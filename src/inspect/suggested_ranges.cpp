// Sizes come from a few plans, values from the nodes that read them.
#include "inspect/suggested_ranges.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

namespace graft::inspect {
namespace {

using Range = std::array<std::int64_t, 3>;  // smallest, usual, largest
using Sizes = std::vector<std::int64_t>;
using Points = std::array<Sizes, 3>;

/// How large the dynamic dimensions are.
struct SizePlan {
  Range batch;     ///< The first dimension.
  Range sequence;  ///< Other dimensions of inputs with at most three.
  Range image;     ///< Other dimensions of inputs with more.
};

constexpr std::array<SizePlan, 5> size_plans{{
    {.batch = {1, 4, 8}, .sequence = {1, 128, 512}, .image = {1, 224, 512}},
    {.batch = {1, 4, 8}, .sequence = {16, 128, 512}, .image = {64, 224, 512}},
    {.batch = {1, 1, 1}, .sequence = {1, 128, 512}, .image = {64, 224, 512}},
    {.batch = {1, 1, 1}, .sequence = {64, 64, 64}, .image = {224, 224, 224}},
    {.batch = {1, 1, 1}, .sequence = {1, 1, 1}, .image = {1, 1, 1}},
}};

bool is_dynamic(const onnx::Value& input) {
  return input.shape &&
         std::any_of(input.shape->begin(), input.shape->end(), [](const Dim& dim) { return !dim.is_constant(); });
}

/// The sizes of every input with a known rank under one plan.
std::map<std::string, Points> sizes_by(const SizePlan& plan, const onnx::Model& model) {
  std::map<std::string, Range, std::less<>> symbols;
  std::map<std::string, Points> sizes;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (!input->shape) continue;
    constexpr std::size_t image_rank = 4;
    const Range& other = input->shape->size() < image_rank ? plan.sequence : plan.image;
    Points& points = sizes[input->name];
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const Dim& dim = (*input->shape)[axis];
      const Range& range = axis == 0 ? plan.batch : other;
      if (dim.kind() == Dim::Kind::symbol) symbols.emplace(dim.name(), range);
      for (std::size_t point = 0; point < points.size(); ++point) {
        const auto value_of = [&](const std::string& name) -> std::optional<std::int64_t> {
          const auto found = symbols.find(name);
          return found == symbols.end() ? range.at(point) : found->second.at(point);
        };
        points.at(point).push_back(dim.evaluate(value_of).value_or(range.at(point)));
      }
    }
  }
  return sizes;
}

std::string text_of(const Points& points) {
  return fmt::format("{}..{}..{}", fmt::join(points[0], "x"), fmt::join(points[1], "x"), fmt::join(points[2], "x"));
}

std::optional<Sizes> constant_sizes(const onnx::Value* value) {
  if (value == nullptr || !value->shape) return std::nullopt;
  Sizes sizes;
  for (const Dim& dim : *value->shape) {
    if (!dim.is_constant()) return std::nullopt;
    sizes.push_back(dim.value());
  }
  return sizes;
}

/// Whether TensorRT may compute sizes from the elements of an input.
bool may_be_values(const onnx::Value& input) {
  constexpr std::size_t most = 64;  // TensorRT's limit for the elements of a shape tensor
  const auto sizes = constant_sizes(&input);
  if (!sizes || sizes->size() > 1 || (sizes->size() == 1 && static_cast<std::size_t>(sizes->front()) > most)) {
    return false;
  }
  return !is_dynamic(input);
}

std::size_t count_of(const onnx::Value& input) {
  return input.shape->empty() ? 1 : static_cast<std::size_t>(input.shape->front().value());
}

/// What the node that reads the values asks of them.
class ValuesFor {
 public:
  ValuesFor(std::size_t count, const std::map<std::string, Points>& sizes) : count_(count), sizes_(sizes) {}

  [[nodiscard]] std::optional<Points> reader(const onnx::Value& value, int depth = 0) const {
    constexpr int deepest = 8;
    if (depth > deepest) return std::nullopt;
    for (const onnx::Use& use : value.uses) {
      const onnx::Node& node = *use.node;
      if (auto points = asked_by(node, use.index)) return points;
      const bool passes_on = node.is("Cast") || node.is("Identity") || node.is("Unsqueeze") || node.is("Squeeze") ||
                             node.is("Concat") || (node.is("Reshape") && use.index == 0);
      if (!passes_on || node.output() == nullptr) continue;
      if (auto points = reader(*node.output(), depth + 1)) return points;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<Points> same(const std::optional<Sizes>& sizes) const {
    if (!sizes || sizes->size() != count_) return std::nullopt;
    return Points{*sizes, *sizes, *sizes};
  }
  [[nodiscard]] Points all(std::int64_t value) const {
    const Sizes sizes(count_, value);
    return {sizes, sizes, sizes};
  }
  /// The sizes of a node's data under the plan.
  [[nodiscard]] std::optional<Points> data_of(const onnx::Node& node) const {
    const onnx::Value* data = node.input(0);
    if (const auto sizes = constant_sizes(data)) return Points{*sizes, *sizes, *sizes};
    const auto found = data == nullptr ? sizes_.end() : sizes_.find(data->name);
    return found == sizes_.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] std::optional<Points> asked_by(const onnx::Node& node, std::size_t index) const {
    if (node.is("Reshape") && index == 1) return of_reshape(node);
    if (node.is("Expand") && index == 1) return of_expand(node);
    if (node.is("Split") && index == 1) return of_split(node);
    if (node.is("ConstantOfShape")) return same(constant_sizes(node.output()));
    if (node.is("Tile") && index == 1) return all(1);
    if (node.is("Pad") && index == 1) return all(0);
    if (node.is("Slice")) return of_slice(node, index);
    if (node.is("TopK") && index == 1) return all(1);
    if (node.is("Range")) return std::array{all(0), all(8), all(1)}.at(std::min<std::size_t>(index, 2));
    if (node.is("Resize") && index == 3) return data_of(node);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Points> of_reshape(const onnx::Node& node) const {
    if (auto declared = same(constant_sizes(node.output()))) return declared;
    auto data = data_of(node);
    if (!data || count_ == 0) return std::nullopt;
    if ((*data)[0].size() == count_) return data;
    Points points = all(1);
    for (std::size_t point = 0; point < points.size(); ++point) {
      const Sizes& sizes = data->at(point);
      points.at(point).front() = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    }
    return points;
  }

  [[nodiscard]] std::optional<Points> of_expand(const onnx::Node& node) const {
    if (auto declared = same(constant_sizes(node.output()))) return declared;
    const auto data = data_of(node);
    if (!data || (*data)[0].size() > count_) return std::nullopt;
    Points points = all(1);
    for (std::size_t point = 0; point < points.size(); ++point) {
      const Sizes& sizes = data->at(point);
      std::copy(sizes.begin(), sizes.end(), points.at(point).end() - static_cast<std::ptrdiff_t>(sizes.size()));
    }
    return points;
  }

  [[nodiscard]] std::optional<Points> of_split(const onnx::Node& node) const {
    const auto data = data_of(node);
    if (!data || count_ == 0) return std::nullopt;
    Points points = all(0);
    for (std::size_t point = 0; point < points.size(); ++point) {
      const auto rank = static_cast<std::int64_t>(data->at(point).size());
      const std::int64_t axis = node.int_or("axis", 0);
      if (axis < -rank || axis >= rank) return std::nullopt;
      const std::int64_t size = data->at(point).at(static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
      const auto parts = static_cast<std::int64_t>(count_);
      for (std::int64_t& part : points.at(point)) part = size / parts;
      points.at(point).back() += size % parts;
    }
    return points;
  }

  [[nodiscard]] std::optional<Points> of_slice(const onnx::Node& node, std::size_t index) const {
    if (index == 1) return all(0);
    if (index != 2) return all(1);
    const auto data = data_of(node);
    return data && (*data)[0].size() == count_ ? data : std::optional(all(1));
  }

  std::size_t count_;
  const std::map<std::string, Points>& sizes_;
};

Points plain_values(std::size_t count, const Range& range) {
  return {Sizes(count, range[0]), Sizes(count, range[1]), Sizes(count, range[2])};
}

}  // namespace

std::vector<SuggestedRanges> suggest_ranges(const onnx::Model& model) {
  const auto& inputs = model.graph().inputs();
  const bool has_dynamic = std::any_of(inputs.begin(), inputs.end(), [](const auto* v) { return is_dynamic(*v); });
  const bool has_values = std::any_of(inputs.begin(), inputs.end(), [](const auto* v) { return may_be_values(*v); });
  constexpr std::array<Range, 2> plain{{{1, 4, 8}, {1, 1, 1}}};  // where the reader says nothing
  std::vector<SuggestedRanges> suggested;
  for (const SizePlan& plan : size_plans) {
    const std::map<std::string, Points> sizes = sizes_by(plan, model);
    for (const Range& range : plain) {
      SuggestedRanges& ranges = suggested.emplace_back();
      for (const onnx::Value* input : inputs) {
        SuggestedRange& found = ranges[input->name];
        if (is_dynamic(*input)) found.sizes = text_of(sizes.at(input->name));
        if (!may_be_values(*input)) continue;
        const std::size_t count = count_of(*input);
        const auto asked = ValuesFor(count, sizes).reader(*input);
        found.values = text_of(asked.value_or(plain_values(count, range)));
      }
      if (!has_values) break;
    }
    if (!has_dynamic) break;
  }
  return suggested;
}

}  // namespace graft::inspect
