// Recognizes a tensor that has the right elements in the wrong order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/layers.hpp"
#include "onnx/tensor_data.hpp"
#include "verify/compare/compare.hpp"

namespace graft::verify {

using report::Rearrangement;

/// Returns the elements of `reference` in the order and shape that `layout` describes.
[[nodiscard]] onnx::TensorData rearrange(const onnx::TensorData& reference, const Rearrangement& layout);

/// Returns the order of the reference's elements that explains the candidate: all elements are within the tolerance,
/// and the root mean square error is at most a tenth of that in the original order. For orders of slices or single
/// elements, the tolerance is that of the type's rounding, even if `tolerance` is wider. `shapes` are known shapes of
/// the tensor before it was flattened; after them, splits of a row into two axes are tried. Returns nothing if the
/// tensors agree as they are, or if no order explains the candidate.
[[nodiscard]] std::optional<Rearrangement> find_rearrangement(
    const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance,
    const std::vector<std::vector<std::int64_t>>& shapes = {});

/// Returns the transposition of the reference that is most similar to the candidate, even if elements exceed the
/// tolerance. Only transpositions that give the candidate's dimensions are considered. Returns nothing if the original
/// order is as similar.
[[nodiscard]] std::optional<Rearrangement> nearest_transposition(const onnx::TensorData& reference,
                                                                 const onnx::TensorData& candidate);

/// Returns the transposition that follows from the dimensions alone: a move of the channel axis, or the only
/// permutation of the reference's dimensions that gives the candidate's. Returns nothing if the dimensions are equal,
/// or if no or several permutations are possible.
[[nodiscard]] std::optional<Rearrangement> transposition_between(const std::vector<std::int64_t>& reference,
                                                                 const std::vector<std::int64_t>& candidate);

/// Returns the layout that moves the channel axis of `dims` from axis 1 to the end, or from the end to axis 1: the
/// first of both whose resulting dimensions satisfy `fits`. Returns nothing if neither does.
[[nodiscard]] std::optional<Rearrangement> exchange_channels(
    const std::vector<std::int64_t>& dims, const std::function<bool(const std::vector<std::int64_t>&)>& fits);

/// Returns a text such as "1.01 times the reference", "the reference + 0.5" or "the reference with the other sign" if
/// the candidate is such a linear function of the reference, within the tolerance. Otherwise returns nothing.
[[nodiscard]] std::optional<std::string> find_scale(const onnx::TensorData& reference,
                                                    const onnx::TensorData& candidate, const Tolerance& tolerance);

}  // namespace graft::verify
