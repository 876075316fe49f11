// Recognizes a tensor whose numbers are right and in the wrong order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/tensor_data.hpp"
#include "verify/compare.hpp"

namespace graft::verify {

/// What the candidate did with the reference's numbers.
struct Rearrangement {
  enum class Kind : std::uint8_t {
    reshaped,    ///< Other dimensions, the same order.
    transposed,  ///< Axes exchanged, and the dimensions with them.
    flattened,   ///< Read off in another order of the axes: NHWC where NCHW was meant.
    channels,    ///< Three or four channels in another order: BGR where RGB was meant.
    flipped,     ///< Mirrored along an axis.
    shifted,     ///< Rotated along an axis.
    reordered,   ///< Slices of an axis in another order.
    shuffled,    ///< The same numbers in an order that none of these explains.
  };
  Kind kind = Kind::reshaped;
  std::string text;                      ///< "flattened from [2, 3, 4, 5] as NHWC; the reference as NCHW".
  std::vector<std::int64_t> dims;        ///< The reference is given these dimensions,
  std::vector<std::int64_t> axes;        ///< then its axes are put into this order (transposed, flattened),
  std::int64_t axis = 0;                 ///< or the slices of one axis
  std::vector<std::int64_t> order;       ///< into this order: candidate slice i is the reference's order[i];
  std::vector<std::int64_t> final_dims;  ///< and then it is given these.

  /// Whether `rearrange` can do the same to other numbers.
  [[nodiscard]] bool is_known() const { return kind != Kind::shuffled; }
};
/// "transposed", "flattened in another order", ...
[[nodiscard]] std::string_view to_string(Rearrangement::Kind kind);

/// The reference's numbers in the candidate's order.
[[nodiscard]] onnx::TensorData rearrange(const onnx::TensorData& reference, const Rearrangement& layout);

/// The candidate is the reference in another order: within the tolerance, and with an error of a tenth at most of the
/// one that is there without it. Slices in any order, and numbers in any, have to be the same but for what the type
/// rounds, however wide the tolerance is. `shapes` are what either was flattened from, where that is known; without
/// them every split of the elements in two is tried. Nothing if they agree as they are, or if no order explains the
/// candidate.
[[nodiscard]] std::optional<Rearrangement> find_rearrangement(
    const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance,
    const std::vector<std::vector<std::int64_t>>& shapes = {});

/// The order of the axes that explains the candidate best, for one whose numbers are not right either: the dimensions
/// exchanged have to be the candidate's. Nothing where the same order is as good.
[[nodiscard]] std::optional<Rearrangement> nearest_transposition(const onnx::TensorData& reference,
                                                                 const onnx::TensorData& candidate);

/// The transposition that other dimensions show by themselves, whatever the numbers are: channels in another place, or
/// the only one there is. Nothing where the dimensions are the same, or explained by several or by none.
[[nodiscard]] std::optional<Rearrangement> transposition_between(const std::vector<std::int64_t>& reference,
                                                                 const std::vector<std::int64_t>& candidate);

/// Channels last where `dims` has them first, or first where it has them last: the one of both whose dimensions fit.
[[nodiscard]] std::optional<Rearrangement> exchange_channels(
    const std::vector<std::int64_t>& dims, const std::function<bool(const std::vector<std::int64_t>&)>& fits);

/// A candidate that is a straight line of the reference: "1.01 times the reference", "the reference + 0.5", "negated".
/// Nothing if it is not.
[[nodiscard]] std::optional<std::string> find_scale(const onnx::TensorData& reference,
                                                    const onnx::TensorData& candidate, const Tolerance& tolerance);

}  // namespace graft::verify
