// Sizes are stored by symbol, so that dimensions computed from a symbol change with it.
#include "inspect/size_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "inspect/range_check.hpp"
#include "onnx/known_sizes.hpp"

namespace graft::inspect {
namespace {

std::vector<std::int64_t> sizes_of(const std::string& option, std::string_view text) {
  std::vector<std::int64_t> sizes;
  while (true) {
    const std::string_view part = text.substr(0, text.find('x'));
    std::int64_t size = 0;
    const auto [end, failed] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (failed != std::errc{} || end != part.data() + part.size() || size < 0) {
      throw Error(
          fmt::format("{} {}: '{}' is not a size\nWrite NAME=MIN..OPT..MAX, for example "
                      "image=1x3x224x224..4x3x224x224..8x3x224x224",
                      setting_name(Setting::shape_ranges), option, part));
    }
    sizes.push_back(size);
    if (part.size() == text.size()) return sizes;
    text.remove_prefix(part.size() + 1);
  }
}

std::array<std::vector<std::int64_t>, 3> range_of(const std::string& option, std::string_view text) {
  const std::size_t first = text.find("..");
  if (first == std::string_view::npos) {
    const std::vector<std::int64_t> sizes = sizes_of(option, text);
    return {sizes, sizes, sizes};
  }
  const std::size_t second = text.find("..", first + 2);
  if (second == std::string_view::npos) {
    throw Error(fmt::format(
        "{} {}: expected one shape, or three shapes joined by .., as in image=1x3x224x224..4x3x224x224..8x3x224x224",
        setting_name(Setting::shape_ranges), option));
  }
  return {sizes_of(option, text.substr(0, first)), sizes_of(option, text.substr(first + 2, second - first - 2)),
          sizes_of(option, text.substr(second + 2))};
}

bool has_open_size(const onnx::Value& value) { return value.shape && !onnx::has_known_sizes(*value.shape); }

}  // namespace

void SizeRanges::add_symbols(const Shape& shape, const std::array<std::vector<std::int64_t>, 3>& sizes,
                             std::array<Point, 3>& points) {
  for (std::size_t point = 0; point < points.size(); ++point) {
    // The numbers are values of a shape tensor, or TensorRT reports that their count is wrong.
    if (sizes.at(point).size() != shape.size()) continue;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis].kind() == Dim::Kind::symbol) points.at(point).emplace(shape[axis].name(), sizes.at(point)[axis]);
    }
  }
}

void SizeRanges::check_symbols(const onnx::Model& model, const std::map<std::string, std::string, std::less<>>& given) {
  constexpr std::array<std::string_view, 3> points{"minimum", "optimum", "maximum"};
  struct Found {
    std::string input;
    std::array<std::int64_t, 3> sizes;
  };
  std::map<std::string, Found> symbols;
  for (const onnx::Value* input : model.graph().inputs()) {
    const auto range = given.find(input->name);
    if (range == given.end() || !input->shape) continue;
    const std::string option = fmt::format("{}={}", input->name, range->second);
    const auto sizes = range_of(option, range->second);
    if (sizes.front().size() != input->shape->size()) continue;  // the values of a shape tensor
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const Dim& dim = (*input->shape)[axis];
      if (dim.kind() != Dim::Kind::symbol) continue;
      const std::array<std::int64_t, 3> own{sizes[0][axis], sizes[1][axis], sizes[2][axis]};
      const Found& first = symbols.emplace(dim.name(), Found{input->name, own}).first->second;
      for (std::size_t point = 0; point < own.size(); ++point) {
        if (first.sizes.at(point) == own.at(point)) continue;
        throw Error(fmt::format(
            "{} {}: the {} has {} for dimension '{}' of input '{}', and {} for the same dimension of input '{}'\n"
            "Set '{}' to the same size in all inputs that have this dimension",
            setting_name(Setting::shape_ranges), option, points.at(point), own.at(point), dim.name(), input->name,
            first.sizes.at(point), first.input, dim.name()));
      }
    }
  }
}

SizeRanges::SizeRanges(const onnx::Model& model, const std::vector<std::string>& strings, bool suggest) {
  for (const onnx::Value* input : model.graph().inputs()) inputs_.insert(input->name);
  for (const std::string& text : strings) {
    const std::size_t equals = text.find_last_of(text.find('=') == std::string::npos ? ':' : '=');
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    const auto& inputs = model.graph().inputs();
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](const onnx::Value* v) { return v->name == name; });
    if (input == inputs.end()) {
      std::vector<std::string> known;
      for (const onnx::Value* value : inputs) known.push_back(value->name);
      throw Error(fmt::format("{} {}: the model has no input '{}'; write NAME=MIN..OPT..MAX, where NAME is one of {}",
                              setting_name(Setting::shape_ranges), text, name, fmt::join(known, ", ")));
    }
    const std::string range = text.substr(equals + 1);
    const auto sizes = range_of(text, range);
    check_range(text, **input, sizes);
    given_[name] = range;
    if ((*input)->shape) add_symbols(*(*input)->shape, sizes, given_points_);
  }
  check_symbols(model, given_);
  points_ = given_points_;
  if (!suggest) return;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->shape) shapes_.emplace(input->name, *input->shape);
  }
  suggestions_ = ranges_worth_a_build(model);
  use_suggestion(0);
}

void SizeRanges::use_suggestion(std::size_t index) {
  suggestion_ = index;
  points_ = given_points_;
  for (const auto& [name, range] : suggestions_.at(index)) {
    if (range.sizes.empty() || given_.contains(name)) continue;
    add_symbols(shapes_.at(name), range_of(name, range.sizes), points_);
  }
}

BuildRanges SizeRanges::for_build(const onnx::Model& part, Unknown unknown) const {
  BuildRanges ranges{.given = of(part, unknown)};
  if (suggestions_.empty()) return ranges;
  ranges.suggested = suggestions_.at(suggestion_);
  ranges.is_strict = !supposes_sizes(part);
  return ranges;
}

bool SizeRanges::differs_from(const SizeRanges& other, const onnx::Model& part) const {
  if (of(part) != other.of(part)) return true;
  const auto& inputs = part.graph().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const onnx::Value* input) {
    if (!inputs_.contains(input->name) || given_.contains(input->name)) return false;
    return suggestions_.at(suggestion_).at(input->name) != other.suggestions_.at(other.suggestion_).at(input->name);
  });
}

/// Returns NAME=MIN..OPT..MAX for each dynamic input of `part`. Sizes that are computed from the same symbol, such as n
/// and 4 * n, use the same value of that symbol, even if the user set no range for it.
std::vector<std::string> SizeRanges::of(const onnx::Model& part, Unknown unknown) const {
  constexpr std::array<std::int64_t, 3> of_unknown{1, 16, 64};  // the range of a size that depends on the data
  using Sizes = std::vector<std::vector<std::int64_t>>;         // the sizes of each input
  std::vector<const onnx::Value*> open;
  std::array<Sizes, 3> sizes;
  std::vector<std::string> strings;
  for (const onnx::Value* input : part.graph().inputs()) {
    if (const auto given = given_.find(input->name); given != given_.end()) {
      strings.push_back(fmt::format("{}={}", input->name, given->second));
      continue;
    }
    if (!has_open_size(*input) || inputs_.contains(input->name)) continue;  // TensorRT reports a missing range
    open.push_back(input);
    for (std::size_t point = 0; point < points_.size(); ++point) {
      const auto value_of = [&](const std::string& name) -> std::optional<std::int64_t> {
        const auto found = points_[point].find(name);
        return found == points_[point].end() ? of_unknown[point] : found->second;
      };
      std::vector<std::int64_t>& of_input = sizes[point].emplace_back();
      for (const Dim& dim : *input->shape) {
        const bool is_same = unknown == Unknown::same && !dim.is_constant();
        of_input.push_back(is_same ? of_unknown[point] : dim.evaluate(value_of).value_or(of_unknown[point]));
      }
    }
  }
  // Negative sizes, and sizes that shrink while other sizes grow, are no valid range: the optimum sizes replace them.
  const auto fits = [&](std::size_t point) {
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (std::size_t axis = 0; axis < sizes[point][i].size(); ++axis) {
        const std::int64_t size = sizes[point][i][axis];
        const std::int64_t usual = sizes[1][i][axis];
        if (size < 0 || (point == 0 ? size > usual : size < usual)) return false;
      }
    }
    return true;
  };
  for (const std::size_t point : {0U, 2U}) {
    if (!fits(point)) sizes[point] = sizes[1];
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    strings.push_back(fmt::format("{}={}..{}..{}", open[i]->name, fmt::join(sizes[0][i], "x"),
                                  fmt::join(sizes[1][i], "x"), fmt::join(sizes[2][i], "x")));
  }
  return strings;
}

bool SizeRanges::supposes_sizes(const onnx::Model& part) const {
  const auto& inputs = part.graph().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const onnx::Value* input) {
    return has_open_size(*input) && !given_.contains(input->name) && !inputs_.contains(input->name);
  });
}

}  // namespace graft::inspect
