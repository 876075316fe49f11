// Subtracts sizes that a network computes from dynamic dimensions.
#include "import/tensorflow/size_difference.hpp"

#include <stdexcept>

namespace graft::tensorflow {
namespace {

/// The size `base` * `factor` + `summand`, which a network computes from a dynamic dimension.
struct Linear {
  std::optional<Dim> base;  ///< The dynamic dimension; absent if the size is a constant.
  std::int64_t factor = 0;
  std::int64_t summand = 0;
};

Linear linear(const Dim& dim) {
  if (dim.is_constant()) return {std::nullopt, 0, dim.value()};
  Linear other{dim, 1, 0};
  const Dim::Kind kind = dim.kind();
  if (kind != Dim::Kind::add && kind != Dim::Kind::subtract && kind != Dim::Kind::multiply) return other;
  const Linear left = linear(dim.left());
  const Linear right = linear(dim.right());
  // Dim's arithmetic throws on overflow, which only happens with unrealistic sizes.
  const auto total = [](std::int64_t a, std::int64_t b, std::int64_t times) {
    return (Dim(a) + Dim(b) * times).value();
  };
  if (kind == Dim::Kind::multiply) {
    if (left.base && right.base) return other;
    const Linear& open = left.base ? left : right;
    const std::int64_t times = left.base ? right.summand : left.summand;
    return {open.base, total(0, open.factor, times), total(0, open.summand, times)};
  }
  if (left.base && right.base && !(*left.base == *right.base)) return other;
  const std::int64_t sign = kind == Dim::Kind::add ? 1 : -1;
  const std::int64_t factor = total(left.factor, right.factor, sign);
  const std::int64_t summand = total(left.summand, right.summand, sign);
  if (factor == 0) return {std::nullopt, 0, summand};
  return {left.base ? left.base : right.base, factor, summand};
}

}  // namespace

std::optional<std::int64_t> constant_difference(const Dim& a, const Dim& b) {
  try {
    const Linear difference = linear(a - b);
    return difference.base ? std::nullopt : std::optional(difference.summand);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

}  // namespace graft::tensorflow
