// Sizes come from a few plans, narrowed to what shape inference accepts; values come from the nodes that read them.
#include "inspect/suggested_ranges.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::inspect {
namespace {

using Range = std::array<std::int64_t, 3>;  // minimum, optimum, maximum
using Sizes = std::vector<std::int64_t>;
using Points = std::array<Sizes, 3>;
using InputSizes = std::map<std::string, Sizes>;

/// The ranges to use for dynamic dimensions, by the kind of the dimension.
struct SizePlan {
  Range batch;     ///< The first dimension.
  Range sequence;  ///< Dimensions after the first, of inputs with at most three dimensions.
  Range image;     ///< Dimensions after the first, of inputs with at least four dimensions.
};

constexpr std::array<SizePlan, 5> size_plans{{
    {.batch = {1, 4, 8}, .sequence = {1, 128, 512}, .image = {1, 224, 512}},
    {.batch = {1, 4, 8}, .sequence = {16, 128, 512}, .image = {64, 224, 512}},
    {.batch = {1, 1, 1}, .sequence = {1, 128, 512}, .image = {64, 224, 512}},
    {.batch = {1, 1, 1}, .sequence = {64, 64, 64}, .image = {224, 224, 224}},
    {.batch = {1, 1, 1}, .sequence = {1, 1, 1}, .image = {1, 1, 1}},
}};

bool is_dynamic(const onnx::Value& input) { return input.shape && !onnx::has_known_sizes(*input.shape); }

/// Returns whether a constant index of a Gather, GatherElements or GatherND lies outside the data. Returns false if
/// indices or sizes are unknown.
bool reads_outside(const onnx::Node& node) {
  constexpr std::size_t most_indices = 4096;
  const onnx::Value* indices = node.input(1);
  const std::optional<onnx::TensorData> constant = indices == nullptr ? std::nullopt : indices->constant();
  if (!constant || constant->bytes.view().size() > most_indices * sizeof(std::int64_t)) return false;
  const std::optional<Sizes> values = constant->ints();
  if (!values) return false;
  const bool has_tuples = node.is("GatherND");
  const std::size_t axes = !has_tuples              ? 1
                           : constant->dims.empty() ? 0
                                                    : static_cast<std::size_t>(constant->dims.back());
  for (std::size_t i = 0; i < values->size(); ++i) {
    const auto axis =
        has_tuples ? node.int_or("batch_dims", 0) + static_cast<std::int64_t>(i % axes) : node.int_or("axis", 0);
    const std::optional<std::int64_t> size = onnx::known_size(node.input(0), axis);
    if (size && ((*values)[i] >= *size || (*values)[i] < -*size)) return true;
  }
  return false;
}

/// Returns whether the constant sizes of a Split's outputs do not add up to the known size of its input.
bool splits_another_size(const onnx::Node& node) {
  std::optional<Sizes> parts = node.ints("split");
  if (const onnx::Value* computed = node.input(1); computed != nullptr) {
    const std::optional<onnx::TensorData> constant = computed->constant();
    parts = constant ? constant->ints() : std::nullopt;
  }
  const std::optional<std::int64_t> size = onnx::known_size(node.input(0), node.int_or("axis", 0));
  return parts && size && std::accumulate(parts->begin(), parts->end(), std::int64_t{0}) != *size;
}

/// Returns whether a node of the main graph contradicts the inferred sizes in a way that shape inference does not check
/// (splits_another_size, reads_outside).
bool has_other_sizes_than_constants(const onnx::Model& model) {
  const auto& nodes = model.graph().nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    if (node->is("Split")) return splits_another_size(*node);
    return (node->is("Gather") || node->is("GatherElements") || node->is("GatherND")) && reads_outside(*node);
  });
}

/// Checks whether a model is valid at given input sizes. The results are kept, because each check infers the shapes of
/// the whole model.
class SizeChecker {
 public:
  explicit SizeChecker(const onnx::Model& model) : model_(model) {}

  /// Returns whether shape inference, and the checks of constants that nodes read, find no contradiction at these input
  /// sizes.
  bool can_compute(const InputSizes& sizes) {
    const auto [found, is_new] = answers_.try_emplace(sizes, true);
    if (!is_new) return found->second;
    std::map<std::string, Shape, std::less<>> shapes;
    for (const auto& [name, dims] : sizes) shapes.emplace(name, Shape(dims.begin(), dims.end()));
    try {
      onnx::Model copy = model_.clone();
      static_cast<void>(onnx::infer_shapes(copy, shapes));
      found->second = !has_other_sizes_than_constants(copy);
    } catch (const Error&) {
      found->second = false;
    }
    return found->second;
  }

  /// Returns whether the maximum number of checks is not reached yet.
  [[nodiscard]] bool has_budget() const {
    constexpr std::size_t most = 120;
    return answers_.size() < most;
  }

 private:
  const onnx::Model& model_;
  std::map<InputSizes, bool> answers_;
};

/// The dynamic dimensions of a model's inputs, by symbol. Assigns sizes from a plan to them.
class DynamicSizes {
 public:
  explicit DynamicSizes(const onnx::Model& model) : model_(model) {
    for (const onnx::Value* input : model.graph().inputs()) {
      if (!input->shape) continue;
      constexpr std::size_t image_rank = 4;
      for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
        if ((*input->shape)[axis].is_constant()) continue;
        const Dimension dimension{.is_batch = axis == 0, .is_image = input->shape->size() >= image_rank};
        const auto [found, is_new] = dimensions_.emplace(key_of(*input, axis), dimension);
        if (is_new && dimension.is_batch) batches_.push_back(found->first);
      }
    }
  }

  struct Fit {
    std::map<std::string, Points> points;  ///< The points of each input.
    bool is_computable = false;            ///< Whether shape inference accepts the optimum sizes.
  };
  /// Returns the minimum, optimum and maximum sizes of each input: those of the plan, changed until shape inference
  /// accepts them. If no optimum sizes are accepted, returns those of the plan unchanged.
  Fit fit(const SizePlan& plan, SizeChecker& checker) const {
    std::map<std::string, Range, std::less<>> ranges = ranges_of(plan, {});
    if (!find_usual_sizes(plan, checker, ranges)) return {points_of(ranges_of(plan, {})), false};
    narrow(checker, ranges, 0);
    narrow(checker, ranges, 2);
    return {points_of(ranges), true};
  }

 private:
  struct Dimension {
    bool is_batch = false;
    bool is_image = false;
  };
  using Ranges = std::map<std::string, Range, std::less<>>;

  /// Returns the key of a dynamic dimension: its symbol or, for a dimension without a name, the input's name and the
  /// axis.
  static std::string key_of(const onnx::Value& input, std::size_t axis) {
    const Dim& dim = (*input.shape)[axis];
    const bool has_name = dim.kind() == Dim::Kind::symbol && !onnx::is_unknown(dim);
    return has_name ? dim.name() : fmt::format("{}\n{}", input.name, axis);
  }

  /// Returns the range of each dynamic dimension according to a plan. First dimensions are batches, except those in
  /// `no_batch`, which get the range of other dimensions.
  [[nodiscard]] Ranges ranges_of(const SizePlan& plan, const std::set<std::string>& no_batch) const {
    Ranges ranges;
    for (const auto& [key, dimension] : dimensions_) {
      const bool is_batch = dimension.is_batch && !no_batch.contains(key);
      const Range& other = dimension.is_image ? plan.image : plan.sequence;
      ranges.emplace(key, is_batch ? plan.batch : other);
    }
    return ranges;
  }

  [[nodiscard]] InputSizes sizes_of(const Ranges& ranges, std::size_t point) const {
    InputSizes sizes;
    for (const onnx::Value* input : model_.graph().inputs()) {
      if (!input->shape) continue;
      std::vector<std::int64_t>& of_input = sizes[input->name];
      const auto value_of = [&](const std::string& name) -> std::optional<std::int64_t> {
        const auto found = ranges.find(name);
        return found == ranges.end() ? std::nullopt : std::optional(found->second.at(point));
      };
      for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
        const Dim& dim = (*input->shape)[axis];
        const auto found = dim.is_constant() ? ranges.end() : ranges.find(key_of(*input, axis));
        const std::optional<std::int64_t> computed = dim.evaluate(value_of);
        of_input.push_back(computed ? *computed : found == ranges.end() ? 1 : found->second.at(point));
      }
    }
    return sizes;
  }

  [[nodiscard]] std::map<std::string, Points> points_of(const Ranges& ranges) const {
    std::map<std::string, Points> points;
    for (std::size_t point = 0; point < 3; ++point) {
      for (auto& [name, sizes] : sizes_of(ranges, point)) points[name].at(point) = sizes;
    }
    return points;
  }

  /// Searches optimum sizes that shape inference accepts, stores them in `ranges` and returns whether it found any.
  /// Tries the sizes of the plan; then the plan with some first dimensions not treated as batches, because an input of
  /// rank 1 may be as long as a sequence; then other sizes with which networks are commonly trained.
  bool find_usual_sizes(const SizePlan& plan, SizeChecker& checker, Ranges& ranges) const {
    const auto fits = [&](Ranges tried) {
      if (!checker.can_compute(sizes_of(tried, 1))) return false;
      ranges = std::move(tried);
      return true;
    };
    if (fits(ranges)) return true;
    constexpr std::size_t most = 6;
    const std::size_t count = std::min(batches_.size(), most);
    for (std::size_t flips = 1; flips < (std::size_t{1} << count) && checker.has_budget(); ++flips) {
      std::set<std::string> no_batch;
      for (std::size_t i = 0; i < count; ++i) {
        if ((flips >> i & 1U) != 0) no_batch.insert(batches_[i]);
      }
      if (fits(ranges_of(plan, no_batch))) return true;
    }
    constexpr std::array<std::int64_t, 22> trained_with{64,  32,  128, 256, 16, 512, 8,  4,  2,  384,  336,
                                                        640, 448, 299, 227, 96, 48,  28, 14, 77, 1024, 1};
    for (const std::int64_t batch : {plan.batch[1], std::int64_t{1}}) {
      for (const std::int64_t size : trained_with) {
        if (!checker.has_budget()) return false;
        Ranges tried = ranges_of(plan, {});
        for (auto& [key, range] : tried) {
          const Dimension& dimension = dimensions_.at(key);
          const std::int64_t usual = dimension.is_batch ? batch : size;
          range = {std::min(range[0], usual), usual, std::max(range[2], usual)};
        }
        if (fits(std::move(tried))) return true;
      }
    }
    return false;
  }

  /// Moves the minimum sizes (`point` 0) or the maximum sizes (`point` 2) in `ranges` toward the optimum sizes until
  /// shape inference accepts them.
  void narrow(SizeChecker& checker, Ranges& ranges, std::size_t point) const {
    const auto narrowed_to = [&](std::int64_t limit, bool has_batch) {
      Ranges narrowed = ranges;
      for (auto& [key, range] : narrowed) {
        const Dimension& dimension = dimensions_.at(key);
        if (dimension.is_batch && !has_batch) continue;
        range.at(point) =
            point == 0 ? std::min(std::max(range[0], limit), range[1]) : std::max(std::min(range[2], limit), range[1]);
      }
      return narrowed;
    };
    constexpr std::array<std::int64_t, 14> limits{2, 3, 4, 5, 7, 8, 10, 14, 16, 28, 32, 64, 128, 256};
    std::vector<Ranges> tried{ranges};
    for (std::size_t i = 0; i < limits.size(); ++i) {
      tried.push_back(narrowed_to(limits.at(point == 0 ? i : limits.size() - 1 - i), false));
    }
    const std::int64_t usual = point == 0 ? std::numeric_limits<std::int64_t>::max() : 0;
    tried.push_back(narrowed_to(usual, false));
    for (Ranges& each : tried) {
      if (!checker.has_budget()) break;
      if (!checker.can_compute(sizes_of(each, point))) continue;
      ranges = std::move(each);
      return;
    }
    ranges = narrowed_to(usual, true);
  }

  const onnx::Model& model_;
  std::map<std::string, Dimension, std::less<>> dimensions_;
  std::vector<std::string> batches_;
};

std::string text_of(const Points& points) {
  return fmt::format("{}..{}..{}", fmt::join(points[0], "x"), fmt::join(points[1], "x"), fmt::join(points[2], "x"));
}

std::optional<Sizes> constant_sizes(const onnx::Value* value) {
  return value == nullptr || !value->shape ? std::nullopt : onnx::known_sizes(*value->shape);
}

/// Returns whether TensorRT can compute sizes from the elements of an input: it has rank 0, or rank 1 and at most 64
/// elements.
bool may_be_values(const onnx::Value& input) {
  constexpr std::size_t most = 64;  // TensorRT's limit for the elements of a shape tensor
  const auto sizes = constant_sizes(&input);
  return sizes && (sizes->empty() || (sizes->size() == 1 && static_cast<std::size_t>(sizes->front()) <= most));
}

std::size_t count_of(const onnx::Value& input) {
  return input.shape->empty() ? 1 : static_cast<std::size_t>(input.shape->front().value());
}

/// Computes suggested elements for an input of `count` elements from the nodes that read it. `sizes` are the suggested
/// sizes of all inputs.
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
  /// Returns the minimum, optimum and maximum sizes of a node's input 0, if it is an input of the model or has a fixed
  /// shape; otherwise nothing.
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

/// Returns whether the elements of the node's input `index` determine the size of an output.
bool reads_sizes(const onnx::Node& node, std::size_t index) {
  if (index == 0) return node.is("ConstantOfShape") || node.is("Range");
  if (onnx::is_any_of(node, {"Expand", "OneHot", "Pad", "Reshape", "Split", "Tile", "TopK"})) return index == 1;
  return node.is("Range") || (node.is("Slice") && index <= 2) || (node.is("Resize") && index == 3);
}

/// Returns whether a node computes a size from the elements of a value, directly or after arithmetic and data movement
/// by at most 8 nodes. `depth` is the number of these nodes that were followed already.
bool decides_sizes(const onnx::Value& value, int depth = 0) {
  constexpr int deepest = 8;
  if (depth > deepest) return false;
  return std::any_of(value.uses.begin(), value.uses.end(), [&](const onnx::Use& use) {
    if (reads_sizes(*use.node, use.index)) return true;
    const bool passes_on =
        has_trait(*use.node, onnx::trait::view | onnx::trait::elementwise | onnx::trait::broadcasting) ||
        onnx::is_any_of(*use.node, {"Cast", "Concat", "Gather", "Slice"});
    return passes_on && use.node->output() != nullptr && decides_sizes(*use.node->output(), depth + 1);
  });
}

Points plain_values(std::size_t count, const Range& range) {
  return {Sizes(count, range[0]), Sizes(count, range[1]), Sizes(count, range[2])};
}

}  // namespace

std::vector<SuggestedRanges> ranges_worth_a_build(const onnx::Model& model) {
  const auto& inputs = model.graph().inputs();
  const bool has_dynamic = std::any_of(inputs.begin(), inputs.end(), [](const auto* v) { return is_dynamic(*v); });
  const bool has_values = std::any_of(inputs.begin(), inputs.end(), [](const auto* v) { return may_be_values(*v); });
  constexpr std::array<Range, 2> plain{{{1, 4, 8}, {1, 1, 1}}};  // used where no reader determines the values
  std::vector<SuggestedRanges> suggested;
  SizeChecker checker(model);
  const DynamicSizes dynamic_sizes(model);
  for (const SizePlan& plan : size_plans) {
    const auto [sizes, is_computable] = dynamic_sizes.fit(plan, checker);
    for (const Range& range : plain) {
      SuggestedRanges ranges;
      for (const onnx::Value* input : inputs) {
        SuggestedRange& found = ranges[input->name];
        if (is_dynamic(*input)) found.sizes = text_of(sizes.at(input->name));
        found.is_computable = !is_dynamic(*input) || is_computable;
        if (!may_be_values(*input)) continue;
        const std::size_t count = count_of(*input);
        const auto asked = ValuesFor(count, sizes).reader(*input);
        found.values = text_of(asked.value_or(plain_values(count, range)));
        found.decides_sizes = decides_sizes(*input);
      }
      const bool is_known = std::find(suggested.begin(), suggested.end(), ranges) != suggested.end();
      if (!is_known) suggested.push_back(std::move(ranges));
      if (!has_values) break;
    }
    if (!has_dynamic) break;
  }
  return suggested;
}

}  // namespace graft::inspect
