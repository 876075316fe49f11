// Guesses orders, tests each of them on a few elements, and then on all elements.
#include "verify/compare/rearrangement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "graft/error.hpp"
#include "verify/compare/figures.hpp"
#include "verify/compare/pieces.hpp"

namespace graft::verify {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr std::size_t highest_permuted_rank = 5;
/// The maximum number of slices along an axis for which every slice is compared with every other slice.
constexpr std::int64_t most_slices = 4096;

std::int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

Dims in_order(std::size_t rank) {
  Dims axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

Dims permuted(const Dims& dims, const Dims& axes) {
  Dims result;
  for (const std::int64_t axis : axes) result.push_back(dims[static_cast<std::size_t>(axis)]);
  return result;
}

/// Maps the row-major position of an element in the candidate to its position in the reference, for a given layout.
class Source {
 public:
  explicit Source(const Rearrangement& layout) {
    const Dims strides = strides_of(layout.dims);
    if (!layout.axes.empty()) {
      dims_ = permuted(layout.dims, layout.axes);
      steps_ = permuted(strides, layout.axes);
    } else {
      dims_ = layout.dims;
      steps_ = strides;
      if (!layout.order.empty()) {
        axis_ = static_cast<std::size_t>(layout.axis);
        order_ = layout.order;
      }
    }
  }

  [[nodiscard]] std::int64_t operator()(std::int64_t position) const {
    std::int64_t from = 0;
    for (std::size_t axis = dims_.size(); axis-- > 0;) {
      std::int64_t at = position % dims_[axis];
      position /= dims_[axis];
      if (!order_.empty() && axis == axis_) at = order_[static_cast<std::size_t>(at)];
      from += at * steps_[axis];
    }
    return from;
  }

 private:
  Dims dims_;
  Dims steps_;
  std::size_t axis_ = 0;
  Dims order_;
};

bool close(double reference, double candidate, double allowed, double relative) {
  if (std::isnan(reference) || std::isnan(candidate)) return std::isnan(reference) == std::isnan(candidate);
  if (std::isinf(reference) || std::isinf(candidate)) return reference == candidate;
  return std::abs(reference - candidate) <= allowed + relative * std::abs(reference);
}

/// The limits within which two elements count as equal: `relative` is a factor for the reference's element, and
/// `allowed` an absolute difference.
struct Nearness {
  double relative;
  double allowed;
  Nearness(const Tolerance& tolerance, double largest)
      : relative(tolerance.relative), allowed(tolerance.absolute + tolerance.of_largest * largest) {}
  [[nodiscard]] bool holds(double reference, double candidate) const {
    return close(reference, candidate, allowed, relative);
  }
};

/// Returns network_tolerance of the element type of one of the tensors, whichever is wider; 0 for integers.
Tolerance rounding_of(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
  const Tolerance left = network_tolerance(reference.type);
  const Tolerance right = network_tolerance(candidate.type);
  return left.relative > right.relative ? left : right;
}

/// Searches for an order of the reference's elements that explains the candidate. An order is accepted if all elements
/// are within the tolerance and their errors are far smaller than in the original order; the second condition is needed
/// because many orders are within a wide tolerance.
class Search {
 public:
  Search(const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance)
      : reference_(reference),
        expected_(*reference.numbers()),
        found_(*candidate.numbers()),
        near_(tolerance, range_of(reference).largest()),
        rounding_(rounding_of(reference, candidate), range_of(reference).largest()) {
    rounding_.relative = std::min(rounding_.relative, near_.relative);
    rounding_.allowed = std::min(rounding_.allowed, near_.allowed);
    for (std::size_t i = 0; i < found_.size(); ++i) straight_ += squared_error(expected_[i], found_[i]);
  }

  [[nodiscard]] bool is_the_same() const {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (!near_.holds(expected_[i], found_[i])) return false;
    }
    return true;
  }

  [[nodiscard]] bool fits(const Rearrangement& layout) const {
    const Source source(layout);
    const auto expected = [&](std::size_t i) {
      return expected_[static_cast<std::size_t>(source(static_cast<std::int64_t>(i)))];
    };
    constexpr std::size_t few = 64;
    constexpr std::size_t stride = 7919;  // A prime number, so that the samples cover every axis.
    for (std::size_t i = 0; i < few; ++i) {
      const std::size_t at = i * stride % found_.size();
      if (!near_.holds(expected(at), found_[at])) return false;
    }
    double squares = 0;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (!near_.holds(expected(i), found_[i])) return false;
      squares += squared_error(expected(i), found_[i]);
    }
    return is_far_better(squares);
  }

  /// Returns whether both tensors contain the same elements in any order, except for rounding, and enough different
  /// elements for this to be no coincidence.
  [[nodiscard]] bool same_numbers() const {
    std::vector<double> left = expected_;
    std::vector<double> right = found_;
    std::sort(left.begin(), left.end());
    std::sort(right.begin(), right.end());
    std::size_t distinct = 1;
    double squares = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!rounding_.holds(left[i], right[i])) return false;
      squares += squared_error(left[i], right[i]);
      if (i > 0 && left[i] != left[i - 1]) ++distinct;
    }
    constexpr std::size_t enough = 16;
    return distinct >= std::min(enough, left.size()) && is_far_better(squares);
  }

  [[nodiscard]] bool has_nan() const {
    const auto is_nan = [](double number) { return std::isnan(number); };
    return std::any_of(expected_.begin(), expected_.end(), is_nan) || std::any_of(found_.begin(), found_.end(), is_nan);
  }

  /// Returns the order of slices along an axis in which slice i of the candidate equals slice order[i] of the
  /// reference, or nothing if there is no such order. A slice that agrees at its own index stays there. Slices of fewer
  /// than 16 elements are similar to many others, so they must agree within the rounding of the type. If `any` is true
  /// (the elements have no known order at all), this applies to all slices.
  [[nodiscard]] std::optional<Dims> order_of_slices(std::size_t axis, bool any) const {
    const Dims& dims = reference_.dims;
    const std::int64_t slices = dims[axis];
    const std::int64_t inner = strides_of(dims)[axis];
    const std::int64_t outer = product(dims) / (slices * inner);
    constexpr std::int64_t is_short = 16;
    const Nearness& nearness = any || outer * inner < is_short ? rounding_ : near_;
    const auto agree = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = 0; i < outer; ++i) {
        for (std::int64_t k = 0; k < inner; ++k) {
          const auto base = static_cast<std::size_t>(i * slices * inner + k);
          if (!nearness.holds(expected_[base + static_cast<std::size_t>(from * inner)],
                              found_[base + static_cast<std::size_t>(to * inner)]))
            return false;
        }
      }
      return true;
    };
    Dims order = in_order(static_cast<std::size_t>(slices));
    std::vector<bool> taken(order.size());
    for (std::int64_t i = 0; i < slices; ++i) taken[static_cast<std::size_t>(i)] = agree(i, i);
    const std::vector<bool> stays = taken;
    for (std::int64_t to = 0; to < slices; ++to) {
      if (stays[static_cast<std::size_t>(to)]) continue;
      std::int64_t from = 0;
      while (from < slices && (taken[static_cast<std::size_t>(from)] || !agree(from, to))) ++from;
      if (from == slices) return std::nullopt;
      taken[static_cast<std::size_t>(from)] = true;
      order[static_cast<std::size_t>(to)] = from;
    }
    return order;
  }

 private:
  static double squared_error(double reference, double candidate) {
    if (std::isfinite(reference) && std::isfinite(candidate)) return (reference - candidate) * (reference - candidate);
    const bool same = reference == candidate || (std::isnan(reference) && std::isnan(candidate));
    return same ? 0 : std::numeric_limits<double>::infinity();
  }

  [[nodiscard]] bool is_far_better(double squares) const {
    constexpr double hundredth = 0.01;  // 20 dB
    return squares <= hundredth * straight_;
  }

  const onnx::TensorData& reference_;
  std::vector<double> expected_;
  std::vector<double> found_;
  Nearness near_;
  Nearness rounding_;
  double straight_ = 0;  ///< The sum of squared errors in the order of the reference.
};

/// Returns the names of the axes of an image of this rank in the order `axes`, for example "NHWC"; empty for ranks
/// other than 3, 4 and 5.
std::string axis_names(std::size_t rank, const Dims& axes) {
  constexpr std::string_view letters3 = "NCW";
  constexpr std::string_view letters4 = "NCHW";
  constexpr std::string_view letters5 = "NCDHW";
  const std::string_view letters = rank == 3 ? letters3 : rank == 4 ? letters4 : rank == 5 ? letters5 : "";
  if (letters.empty()) return "";
  std::string names;
  for (const std::int64_t axis : axes) names += letters[static_cast<std::size_t>(axis)];
  return names;
}

Dims inverse(const Dims& axes) {
  Dims result(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    result[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
  return result;
}

/// Returns the permutation of axes that moves the channels from axis 1 to the last axis.
Dims channels_to_last(std::size_t rank) {
  Dims axes{0};
  for (std::size_t axis = 2; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  axes.push_back(1);
  return axes;
}

/// Returns a text such as "NHWC in the candidate, NCHW in the reference" if the permutation exchanges channels first
/// and channels last; otherwise an empty string.
std::string known_exchange(std::size_t rank, const Dims& axes) {
  if (rank < 3) return "";
  const Dims to_last = channels_to_last(rank);
  const std::string first = axis_names(rank, in_order(rank));
  const std::string last = axis_names(rank, to_last);
  if (axes == to_last) return fmt::format("{} in the candidate, {} in the reference", last, first);
  if (axes == inverse(to_last)) return fmt::format("{} in the candidate, {} in the reference", first, last);
  return "";
}

/// Returns a layout for each permutation of the axes of `dims` that changes the order of elements, the exchanges of
/// channels first and channels last before all others. The result of each layout has the shape `final_dims`.
std::vector<Rearrangement> permutations_of(const Dims& dims, const Dims& final_dims) {
  std::vector<Rearrangement> layouts;
  const auto longer = std::count_if(dims.begin(), dims.end(), [](std::int64_t size) { return size > 1; });
  if (dims.size() > highest_permuted_rank || longer < 2) return layouts;
  Dims axes = in_order(dims.size());
  while (std::next_permutation(axes.begin(), axes.end())) {
    Dims order;  // The order of the axes longer than 1: if it is unchanged, so is the order of the elements.
    for (const std::int64_t axis : axes) {
      if (dims[static_cast<std::size_t>(axis)] > 1) order.push_back(axis);
    }
    if (std::is_sorted(order.begin(), order.end())) continue;
    Rearrangement layout;
    layout.dims = dims;
    layout.axes = axes;
    layout.final_dims = final_dims;
    const bool is_transposed = permuted(dims, axes) == final_dims;
    layout.kind = is_transposed ? Rearrangement::Kind::transposed : Rearrangement::Kind::flattened;
    const std::string names = known_exchange(dims.size(), axes);
    if (is_transposed) {
      layout.text = fmt::format("transposed by {}{}", axes, names.empty() ? "" : ": " + names);
    } else {
      layout.text = fmt::format("flattened in another order: from {} with the axes in the order {}{}", dims, axes,
                                names.empty() ? "" : ", " + names);
    }
    layouts.push_back(std::move(layout));
  }
  std::stable_sort(layouts.begin(), layouts.end(), [](const Rearrangement& a, const Rearrangement& b) {
    return !known_exchange(a.dims.size(), a.axes).empty() && known_exchange(b.dims.size(), b.axes).empty();
  });
  return layouts;
}

/// Returns the layouts to try if the shape before flattening is unknown: each splits the elements of a row into two
/// axes of sizes greater than 1 and swaps these axes.
std::vector<Rearrangement> splits_of(const Dims& reference, const Dims& candidate) {
  std::vector<Rearrangement> layouts;
  const auto try_split = [&](std::int64_t rows, std::int64_t row) {
    for (std::int64_t first = 2; first * 2 <= row; ++first) {
      if (row % first != 0) continue;
      Rearrangement layout;
      layout.kind = Rearrangement::Kind::flattened;
      layout.dims = {rows, first, row / first};
      layout.axes = {0, 2, 1};
      layout.final_dims = candidate;
      layout.text =
          fmt::format("flattened in another order: {} elements as {} x {} in the candidate, {} x {} in the reference",
                      row, row / first, first, first, row / first);
      layouts.push_back(std::move(layout));
    }
  };
  const std::int64_t count = product(reference);
  if (!reference.empty() && reference.front() > 0 && reference.size() > 1)
    try_split(reference.front(), count / reference.front());
  if (reference.empty() || reference.front() != 1) try_split(1, count);
  return layouts;
}

/// Returns a text such as "[3, 9] are the reference's [9, 3]" that lists up to 8 slices that are not at their own
/// index.
std::string moved_text(const Dims& order) {
  constexpr std::size_t few = 8;
  Dims to;
  Dims from;
  bool more = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == static_cast<std::int64_t>(i)) continue;
    more = to.size() == few;
    if (more) break;
    to.push_back(static_cast<std::int64_t>(i));
    from.push_back(order[i]);
  }
  const char* end = more ? ", ..." : "";
  return fmt::format("[{}{}] are the reference's [{}{}]", fmt::join(to, ", "), end, fmt::join(from, ", "), end);
}

std::optional<Rearrangement> order_along(const Search& search, const onnx::TensorData& reference, std::size_t axis,
                                         bool any) {
  const std::int64_t slices = reference.dims[axis];
  if (slices < 2 || slices > most_slices) return std::nullopt;
  const auto order = search.order_of_slices(axis, any);
  if (!order || std::is_sorted(order->begin(), order->end())) return std::nullopt;
  Rearrangement layout;
  layout.dims = reference.dims;
  layout.axis = static_cast<std::int64_t>(axis);
  layout.order = *order;
  layout.final_dims = reference.dims;
  constexpr std::int64_t most_colors = 4;
  const bool reversed = std::is_sorted(order->rbegin(), order->rend());
  const std::int64_t turn = order->front();
  bool rotated = true;
  for (std::int64_t i = 0; i < slices; ++i)
    rotated = rotated && (*order)[static_cast<std::size_t>(i)] == (i + turn) % slices;
  // For this number of slices the order alone identifies the axis well enough.
  const bool may_be_channels = slices == 3 || slices == most_colors;
  if (may_be_channels) {
    layout.kind = Rearrangement::Kind::channels;
    layout.text =
        reversed && slices == 3
            ? fmt::format("channels swapped along axis {}: BGR in one model, RGB in the other", axis)
            : fmt::format("channels swapped along axis {}: the candidate has the reference's {}", axis, *order);
  } else if (reversed && slices > 2) {
    layout.kind = Rearrangement::Kind::flipped;
    layout.text = fmt::format("mirrored along axis {}", axis);
  } else if (rotated) {
    layout.kind = Rearrangement::Kind::shifted;
    layout.text = fmt::format("rotated by {} along axis {}", turn, axis);
  } else {
    layout.kind = Rearrangement::Kind::reordered;
    layout.text = fmt::format("slices of axis {} in another order: {}", axis, moved_text(*order));
  }
  return layout;
}

bool comparable(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
  return is_real(reference.type) && is_real(candidate.type) && reference.element_count() > 1 &&
         reference.element_count() == candidate.element_count();
}

}  // namespace

onnx::TensorData rearrange(const onnx::TensorData& reference, const Rearrangement& layout) {
  onnx::TensorData result = reference;
  result.dims = layout.final_dims;
  if (layout.axes.empty() && layout.order.empty()) return result;
  const auto bits = static_cast<std::size_t>(bits_of(reference.type));
  if (bits < 8) throw Error(Error::Kind::internal, "rearrange: the elements are smaller than a byte");
  const std::size_t size = bits / 8;
  const Source source(layout);
  std::string bytes(reference.bytes.size(), '\0');
  for (std::int64_t i = 0; i < reference.element_count(); ++i) {
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * size,
                reference.bytes.data() + static_cast<std::size_t>(source(i)) * size, size);
  }
  result.bytes = onnx::Bytes(std::move(bytes));
  return result;
}

std::optional<Rearrangement> find_rearrangement(const onnx::TensorData& reference, const onnx::TensorData& candidate,
                                                const Tolerance& tolerance,
                                                const std::vector<std::vector<std::int64_t>>& shapes) {
  if (!comparable(reference, candidate)) return std::nullopt;
  const TensorRange left = range_of(reference);
  const TensorRange right = range_of(candidate);
  const double slack = tolerance.absolute + (tolerance.relative + tolerance.of_largest) * left.largest();
  const bool alike = left.nan == right.nan && left.infinite == right.infinite &&
                     std::abs(left.lowest.value_or(0) - right.lowest.value_or(0)) <= slack &&
                     std::abs(left.highest.value_or(0) - right.highest.value_or(0)) <= slack;
  if (!alike) return std::nullopt;
  const Search search(reference, candidate, tolerance);
  Rearrangement as_it_is;
  as_it_is.dims = reference.dims;
  as_it_is.final_dims = candidate.dims;
  if (search.is_the_same()) {
    if (reference.dims == candidate.dims) return std::nullopt;
    as_it_is.text = fmt::format("reshaped: {} in the candidate, {} in the reference", candidate.dims, reference.dims);
    return as_it_is;
  }
  std::vector<Rearrangement> guesses = permutations_of(reference.dims, candidate.dims);
  const auto more = [&](std::vector<Rearrangement> layouts) {
    guesses.insert(guesses.end(), std::make_move_iterator(layouts.begin()), std::make_move_iterator(layouts.end()));
  };
  // A transposition that results in the candidate's dimensions is the most likely guess.
  if (reference.dims != candidate.dims) {
    std::stable_partition(guesses.begin(), guesses.end(),
                          [](const Rearrangement& layout) { return layout.kind == Rearrangement::Kind::transposed; });
  }
  for (const Dims& shape : shapes) {
    if (product(shape) == reference.element_count()) more(permutations_of(shape, candidate.dims));
  }
  for (const Rearrangement& guess : guesses) {
    if (search.fits(guess)) return guess;
  }
  if (reference.dims == candidate.dims) {
    for (std::size_t axis = 0; axis < reference.dims.size(); ++axis) {
      auto layout = order_along(search, reference, axis, false);
      if (layout && layout->kind != Rearrangement::Kind::reordered && search.fits(*layout)) return layout;
    }
  }
  for (const Rearrangement& guess : splits_of(reference.dims, candidate.dims)) {
    if (search.fits(guess)) return guess;
  }
  if (search.has_nan() || !search.same_numbers()) return std::nullopt;  // NaN cannot be sorted.
  // Any order of the elements of a row is also an order of its slices, so this explanation is tried last.
  if (reference.dims == candidate.dims) {
    for (std::size_t axis = 0; axis < reference.dims.size(); ++axis) {
      auto layout = order_along(search, reference, axis, true);
      if (layout && search.fits(*layout)) return layout;
    }
  }
  as_it_is.kind = Rearrangement::Kind::shuffled;
  as_it_is.text = "the same values in another order";
  return as_it_is;
}

std::optional<Rearrangement> nearest_transposition(const onnx::TensorData& reference,
                                                   const onnx::TensorData& candidate) {
  if (!comparable(reference, candidate) || bits_of(reference.type) < 8) return std::nullopt;
  std::optional<Rearrangement> best;
  constexpr double worth_naming = 6;  // In dB: the order explains half of the signal.
  double best_snr = worth_naming;
  if (reference.dims == candidate.dims) {
    const ErrorFigures same = error_figures(reference, candidate);
    if (!same.snr_db) return std::nullopt;
    best_snr = std::max(best_snr, *same.snr_db + worth_naming);
  }
  for (Rearrangement& layout : permutations_of(reference.dims, candidate.dims)) {
    if (layout.kind != Rearrangement::Kind::transposed) continue;
    const ErrorFigures figures = error_figures(rearrange(reference, layout), candidate);
    if (figures.snr_db && *figures.snr_db <= best_snr) continue;
    best_snr = figures.snr_db.value_or(std::numeric_limits<double>::infinity());
    best = std::move(layout);
  }
  return best;
}

std::optional<Rearrangement> transposition_between(const Dims& reference, const Dims& candidate) {
  if (reference == candidate || reference.size() != candidate.size()) return std::nullopt;
  const auto is_candidate = [&](const Dims& dims) { return dims == candidate; };
  if (auto exchanged = exchange_channels(reference, is_candidate)) return exchanged;
  // For tensors without elements, or with only one axis longer than 1, all transpositions are equal.
  const auto longer = std::count_if(reference.begin(), reference.end(), [](std::int64_t size) { return size > 1; });
  if ((product(reference) == 0 || longer < 2) &&
      std::is_permutation(reference.begin(), reference.end(), candidate.begin(), candidate.end())) {
    Rearrangement layout;
    layout.dims = reference;
    layout.final_dims = candidate;
    layout.text = fmt::format("reshaped from {} to {}", reference, candidate);
    return layout;
  }
  std::optional<Rearrangement> only;
  for (Rearrangement& layout : permutations_of(reference, candidate)) {
    if (layout.kind != Rearrangement::Kind::transposed) continue;
    if (only) return std::nullopt;
    only = std::move(layout);
  }
  return only;
}

std::optional<Rearrangement> exchange_channels(const std::vector<std::int64_t>& dims,
                                               const std::function<bool(const std::vector<std::int64_t>&)>& fits) {
  if (dims.size() < 3) return std::nullopt;
  const Dims to_last = channels_to_last(dims.size());
  for (const Dims& axes : {to_last, inverse(to_last)}) {
    if (!fits(permuted(dims, axes))) continue;
    Rearrangement layout;
    layout.kind = Rearrangement::Kind::transposed;
    layout.dims = dims;
    layout.axes = axes;
    layout.final_dims = permuted(dims, axes);
    layout.text = fmt::format("transposed by {}", axes);
    return layout;
  }
  return std::nullopt;
}

std::optional<std::string> find_scale(const onnx::TensorData& reference, const onnx::TensorData& candidate,
                                      const Tolerance& tolerance) {
  if (!comparable(reference, candidate) || reference.dims != candidate.dims) return std::nullopt;
  const TensorRange left = range_of(reference);
  const TensorRange right = range_of(candidate);
  if (left.nan + left.infinite + right.nan + right.infinite != 0) return std::nullopt;
  const auto count = static_cast<double>(left.count);
  const double mean = left.sum / count;
  const double variance = left.squares / count - mean * mean;
  if (!(variance > 0)) return std::nullopt;
  double products = 0;
  for_each_piece(left.count, [&](std::int64_t begin, std::int64_t size) {
    const auto expected = piece_of(reference, begin, size).numbers();
    const auto found = piece_of(candidate, begin, size).numbers();
    for (std::size_t i = 0; i < expected->size(); ++i) products += (*expected)[i] * (*found)[i];
  });
  double factor = (products / count - mean * (right.sum / count)) / variance;
  double offset = right.sum / count - factor * mean;
  const double smallest = tolerance.absolute + (tolerance.relative + tolerance.of_largest) * left.largest();
  if (std::abs(factor - 1) * left.largest() <= smallest) factor = 1;
  if (std::abs(offset) <= smallest) offset = 0;
  if (factor == 0 || (factor == 1 && offset == 0)) return std::nullopt;

  // The error of the fit is added to the tolerance.
  constexpr double slack = 4;
  const double allowed = slack * (tolerance.absolute + tolerance.of_largest * right.largest());
  bool fits = true;
  for_each_piece(left.count, [&](std::int64_t begin, std::int64_t size) {
    const auto expected = piece_of(reference, begin, size).numbers();
    const auto found = piece_of(candidate, begin, size).numbers();
    for (std::size_t i = 0; i < expected->size() && fits; ++i) {
      fits = close(factor * (*expected)[i] + offset, (*found)[i], allowed, slack * tolerance.relative);
    }
  });
  if (!fits) return std::nullopt;
  if (factor == 1) return fmt::format("the reference {} {:.4g}", offset < 0 ? "-" : "+", std::abs(offset));
  std::string text =
      factor == -1 ? "the reference with the opposite sign" : fmt::format("{:.5g} times the reference", factor);
  if (offset != 0) text += fmt::format(" {} {:.4g}", offset < 0 ? "-" : "+", std::abs(offset));
  return text;
}

}  // namespace graft::verify
