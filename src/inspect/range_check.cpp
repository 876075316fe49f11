// TensorRT reports a range that no input can have only as a build that fails, which would look like a verdict on the
// model.
#include "inspect/range_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <limits>
#include <string_view>

#include "graft/error.hpp"
#include "graft/operator/shape.hpp"
#include "graft/setting.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::inspect {
namespace {

constexpr std::array<std::string_view, 3> point_names{"minimum", "optimum", "maximum"};

[[noreturn]] void fail(const std::string& option, const std::string& fault, std::string_view remedy) {
  throw Error(fmt::format("{} {}: {}\n{}", setting_name(Setting::shape_ranges), option, fault, remedy));
}

/// Returns whether `count` numbers may be the elements of an input instead of its shape: the input has integers, rank 0
/// or 1, and may have `count` elements.
bool may_be_values(const onnx::Value& input, std::size_t count) {
  if (!input.type || !onnx::is_integer(*input.type)) return false;
  if (!input.shape) return true;
  if (input.shape->size() > 1) return false;
  const Dim elements = input.shape->empty() ? Dim(1) : input.shape->front();
  return !elements.is_constant() || elements == Dim(static_cast<std::int64_t>(count));
}

void check_order(const std::string& option, const RangeOfSizes& range) {
  constexpr std::string_view remedy = "Set minimum <= optimum <= maximum in every dimension";
  const auto& [least, usual, largest] = range;
  if (least.size() != usual.size() || usual.size() != largest.size()) {
    fail(option,
         fmt::format("the minimum, the optimum and the maximum have {}, {} and {} dimensions", least.size(),
                     usual.size(), largest.size()),
         remedy);
  }
  for (std::size_t axis = 0; axis < least.size(); ++axis) {
    if (least[axis] <= usual[axis] && usual[axis] <= largest[axis]) continue;
    fail(option,
         fmt::format("dimension {} has the minimum {}, the optimum {} and the maximum {}", axis, least[axis],
                     usual[axis], largest[axis]),
         remedy);
  }
}

void check_shape(const std::string& option, const onnx::Value& input, const RangeOfSizes& range) {
  constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max();
  for (std::size_t point = 0; point < range.size(); ++point) {
    const std::vector<std::int64_t>& sizes = range.at(point);
    const std::string declared = input.shape ? to_string(*input.shape) : "";
    const std::string remedy = fmt::format("Set shapes that input '{}' can have{}", input.name,
                                           input.shape ? "; the model declares " + declared : "");
    if (input.shape && input.shape->size() != sizes.size()) {
      fail(option,
           fmt::format("the {} has {} dimensions, but the input has {}", point_names.at(point), sizes.size(),
                       input.shape->size()),
           remedy);
    }
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] > largest_size) {
        fail(option, fmt::format("the size {} is outside the range 0 to {}", sizes[axis], largest_size), remedy);
      }
      if (!input.shape || !(*input.shape)[axis].is_constant() || (*input.shape)[axis] == Dim(sizes[axis])) continue;
      fail(option,
           fmt::format("the {} has the size {} in dimension {}, which the model fixes at {}", point_names.at(point),
                       sizes[axis], axis, (*input.shape)[axis].value()),
           remedy);
    }
  }
}

}  // namespace

void check_range(const std::string& option, const onnx::Value& input, const RangeOfSizes& range) {
  check_order(option, range);
  if (!may_be_values(input, range.front().size())) check_shape(option, input, range);
}

}  // namespace graft::inspect
