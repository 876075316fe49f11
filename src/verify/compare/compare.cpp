// Compares tensors in pieces, so that large tensors are never converted as a whole.
#include "verify/compare/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "graft/error.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "verify/compare/figures.hpp"
#include "verify/compare/pieces.hpp"
#include "verify/judge/noise_floor.hpp"

namespace graft::verify {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double decibels = 10;
std::vector<std::int64_t> index_of(std::int64_t position, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> index(dims.size());
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    index[axis] = position % dims[axis];
    position /= dims[axis];
  }
  return index;
}

/// The minimum number of elements of a slice for which Tolerance::by_slice uses the slice's own maximum. All elements
/// of a smaller slice may be small by chance.
constexpr std::int64_t fewest_of_slice = 16;

SliceMaxima largest_of_slices(const onnx::TensorData& tensor, std::int64_t fewest) {
  SliceMaxima largest(tensor.dims, fewest);
  for_each_piece(tensor.element_count(), [&](std::int64_t begin, std::int64_t count) {
    const auto numbers = piece_of(tensor, begin, count).numbers();
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      const double number = std::abs((*numbers)[i]);
      if (std::isfinite(number)) largest.raise(begin + static_cast<std::int64_t>(i), number);
    }
  });
  return largest;
}

/// An integer element, with the bits that TensorData::ints returns. For u64, values from 2^63 on are negative in
/// `value`.
struct Integer {
  std::int64_t value = 0;
  bool is_u64 = false;

  [[nodiscard]] double number() const {
    return is_u64 ? static_cast<double>(static_cast<std::uint64_t>(value)) : static_cast<double>(value);
  }
  [[nodiscard]] std::string to_string() const {
    return is_u64 ? fmt::format("{}", static_cast<std::uint64_t>(value)) : fmt::format("{}", value);
  }
};

/// Returns |left - right|, computed in 64 bits, because beyond 2^53 adjacent integers round to the same double.
double distance_between(const Integer& left, const Integer& right) {
  if (left.is_u64 != right.is_u64 && (left.value < 0 || right.value < 0))
    return std::abs(left.number() - right.number());
  const auto a = static_cast<std::uint64_t>(left.value);
  const auto b = static_cast<std::uint64_t>(right.value);
  const bool is_less = left.is_u64 && right.is_u64 ? a < b : left.value < right.value;
  return static_cast<double>(is_less ? b - a : a - b);
}

Integer integer_at(const onnx::TensorData& tensor, std::int64_t position) {
  const std::int64_t before = position % 2;  // A piece of a 4-bit type must begin at an even position.
  return {piece_of(tensor, position - before, before + 1).ints()->back(), tensor.type == onnx::ElementType::u64};
}

class Comparison {
 public:
  Comparison(const Tolerance& tolerance, const onnx::TensorData& reference, const NoiseFloor* floor)
      : tolerance_(tolerance), dims_(reference.dims), of_element_(tolerance, reference), floor_(floor) {
    if (reference.type == onnx::ElementType::i8) bounds_ = bounds_of<std::int8_t>();
    if (reference.type == onnx::ElementType::u8) bounds_ = bounds_of<std::uint8_t>();
  }

  void whole(const Integer& reference, const Integer& candidate) {
    add(reference.number(), candidate.number(), distance_between(reference, candidate));
  }

  void real(double reference, double candidate) {
    if (std::isnan(reference) != std::isnan(candidate)) {
      add_other_kind(reference, candidate, result_.nan_disagreements);
    } else if (std::isnan(reference) || (std::isinf(reference) && reference == candidate)) {
      if (std::isnan(reference)) ++result_.nan_agreements;
      ++result_.count;
      finite_ = false;
    } else if (std::isinf(reference) || std::isinf(candidate)) {
      add_other_kind(reference, candidate, result_.infinity_disagreements);
    } else {
      add(reference, candidate, std::abs(reference - candidate));
    }
  }

  Difference finish() {
    result_.snr_db = decibels_between(squares_reference_, squares_error_);
    if (tolerance_.snr_db) judge_all();
    if (tolerance_.least_snr_db) judge_ratio(*tolerance_.least_snr_db);
    if (others_ != 0) judge_others();
    if (tolerance_.is_step) judge_shift();
    if (finite_ && squares_reference_ > 0 && squares_candidate_ > 0) {
      const auto cosine =
          static_cast<double>(product_ / (std::sqrt(squares_reference_) * std::sqrt(squares_candidate_)));
      if (std::isfinite(cosine)) result_.cosine = cosine;
    }
    if (max_absolute_at_) result_.max_absolute_at = index_of(*max_absolute_at_, dims_);
    if (max_relative_at_) result_.max_relative_at = index_of(*max_relative_at_, dims_);
    return std::move(result_);
  }

  /// Returns the row-major position of the first mismatch, or nothing if there was no mismatch.
  [[nodiscard]] std::optional<std::int64_t> first_position() const { return first_position_; }

 private:
  /// Counts an element that is NaN or infinite in one tensor only. If rounding alone makes the reference's element NaN
  /// or infinite (or finite instead), the element is undecided; otherwise it is a mismatch and increments
  /// `disagreements`.
  void add_other_kind(double reference, double candidate, std::int64_t& disagreements) {
    if (std::isinf(noise())) {
      ++result_.undecided;
      ++result_.within_noise;
    } else {
      ++disagreements;
      mismatch(reference, candidate, infinity);
    }
    ++result_.count;
    finite_ = false;
  }

  void add(double reference, double candidate, double difference) {
    ++result_.finite;
    product_ += static_cast<SumOfSquares>(reference) * candidate;
    squares_error_ += square_of(difference);
    squares_reference_ += square_of(reference);
    squares_candidate_ += square_of(candidate);
    if (difference > result_.max_absolute) {
      result_.max_absolute = difference;
      max_absolute_at_ = result_.count;
    }
    if (reference != 0 && difference / std::abs(reference) > result_.max_relative) {
      result_.max_relative = difference / std::abs(reference);
      max_relative_at_ = result_.count;
    }
    if (tolerance_.least_snr_db && floor_ != nullptr) {
      const double allowed = NoiseFloor::factor * noise();
      squares_floor_ += square_of(std::isfinite(allowed) ? allowed : difference);
    }
    if (tolerance_.is_step) add_direction(reference, candidate);
    if (difference > 0 && differing_++ == 0) first_differing_ = {result_.count, reference, candidate};
    if (difference > 0 && tolerance_.snr_db) {
      // judge_all() judges all elements together.
    } else if (difference > 0) {
      double allowed = of_element_.at(result_.count, reference);
      if (difference > allowed && floor_ != nullptr && floor_->most_others() > 0) {
        if (others_++ == 0) keep_first({result_.count, reference, candidate});
        if (noise() == 0) {
          ++unexpected_;
        } else if (!floor_->has_given(result_.count, candidate)) {
          ++unseen_;
        }
        ++result_.count;
        return;
      }
      if (const double floor = difference > allowed ? noise() : 0; floor > 0) {
        if (difference > allowed + NoiseFloor::factor * floor_->finite_at(result_.count) && std::isinf(floor)) {
          ++result_.undecided;
        }
        allowed += NoiseFloor::factor * floor;
        if (difference <= allowed) ++result_.within_noise;
      }
      const double excess = allowed > 0 ? difference / allowed : infinity;
      result_.excess = std::max(result_.excess, excess);
      if (!(difference <= allowed)) mismatch(reference, candidate, excess);
    }
    ++result_.count;
  }

  /// Returns the noise floor of the element that is compared next; 0 without a noise floor, infinity if rounding alone
  /// makes the element NaN or infinite.
  [[nodiscard]] double noise() const { return floor_ == nullptr ? 0 : floor_->at(result_.count); }

  void mismatch(double reference, double candidate, double excess) {
    if (result_.mismatched++ == 0) keep_first({result_.count, reference, candidate});
    result_.excess = std::max(result_.excess, excess);
  }

  /// An element to report: its row-major position and its value in both tensors.
  struct Element {
    std::int64_t position = 0;
    double reference = 0;
    double candidate = 0;
  };

  void keep_first(const Element& element) {
    first_position_ = element.position;
    result_.first_index = index_of(element.position, dims_);
    result_.first_reference = element.reference;
    result_.first_candidate = element.candidate;
  }

  /// Applies Tolerance::snr_db: if the signal-to-noise ratio of all elements is too low, all elements that differ
  /// become mismatches.
  void judge_all() {
    if (differing_ == 0) return;
    if (result_.mismatched == 0) keep_first(first_differing_);
    const double missing = result_.snr_db ? *tolerance_.snr_db - *result_.snr_db : infinity;
    constexpr double of_amplitude = 20;
    const double excess = std::pow(10.0, missing / of_amplitude);
    result_.excess = std::max(result_.excess, excess);
    if (!(excess <= 1)) result_.mismatched += differing_;
  }

  /// Applies Tolerance::least_snr_db in addition to the limits of single elements: if the signal-to-noise ratio of all
  /// elements is below `least_db`, the elements that differ become mismatches.
  void judge_ratio(double least_db) {
    if (!(squares_reference_ > 0) || !(squares_error_ > 0)) return;
    if (!std::isfinite(squares_error_)) {
      // A difference exceeds the range of double, so it is not known whether the ratio is high enough.
      if (result_.mismatched == 0) keep_first(first_differing_);
      result_.excess = infinity;
      result_.mismatched = std::max(result_.mismatched, differing_);
      return;
    }
    const SumOfSquares of_limit = squares_reference_ * std::pow(10.0, -least_db / decibels);
    if (squares_error_ <= of_limit) return;
    const SumOfSquares allowed = std::max(of_limit, squares_floor_);
    result_.excess = std::max(result_.excess, static_cast<double>(std::sqrt(squares_error_ / allowed)));
    if (squares_error_ <= allowed) {
      if (result_.mismatched == 0) result_.within_noise = differing_;
      return;
    }
    if (result_.mismatched == 0) keep_first(first_differing_);
    result_.missed_snr_db =
        std::min(least_db, static_cast<double>(decibels * std::log10(squares_reference_ / allowed)));
    result_.mismatched = std::max(result_.mismatched, differing_);
  }

  /// Judges integers that are identifiers, such as indices and classes, by three limits:
  /// - At most NoiseFloor::factor times as many elements may differ as between the reference and one noisy run.
  /// - Of the elements that no noisy run changed, hardly any may differ.
  /// - Few elements may have a value that no noisy run returned. This detects, for example, that the third-best index
  ///   is returned where the two best are tied.
  void judge_others() {
    constexpr std::int64_t share = 4;
    const std::int64_t most = floor_->most_others();
    const auto allowed = NoiseFloor::factor * static_cast<double>(most);
    const std::int64_t unexpected_whole = (most + share - 1) / share;
    const auto unexpected_allowed = static_cast<double>(unexpected_whole);
    const std::int64_t unseen_whole = most / share;
    double unseen_allowed = std::max(static_cast<double>(unseen_whole), NoiseFloor::factor * floor_->expected_new());
    // If the draws do not determine the set of possible integers, an integer that no draw returned counts as no
    // difference, and the comparison would detect nothing. So their number is limited.
    if (!floor_->allows_anything()) {
      unseen_allowed = std::min(unseen_allowed, NoiseFloor::most_unseen * static_cast<double>(result_.count));
    }
    const double unseen_excess =
        unseen_ == 0 ? 0 : (unseen_allowed == 0 ? infinity : static_cast<double>(unseen_) / unseen_allowed);
    const double excess = std::max(
        {static_cast<double>(others_) / allowed, static_cast<double>(unexpected_) / unexpected_allowed, unseen_excess});
    result_.excess = std::max(result_.excess, excess);
    (excess > 1 ? result_.mismatched : result_.within_noise) += others_;
  }

  void add_direction(double reference, double candidate) {
    if (candidate != reference) {
      shift_ += candidate > reference ? 1 : -1;
    } else if (reference == bounds_.first || reference == bounds_.second) {
      ++saturated_;
    }
  }

  /// Judges integers that result from rounding. Elements close to the middle between two steps may be rounded up in one
  /// model and down in the other, in both directions equally often. The comparison fails if more than half of the
  /// elements that are not saturated in both tensors (and more than 15) are off in the same direction, and more than
  /// NoiseFloor::factor times as many as in one noisy run.
  void judge_shift() {
    constexpr double few = 15;
    const auto shifted = static_cast<double>(std::abs(shift_));
    const double allowed = std::max(few, static_cast<double>(result_.count - saturated_) / 2);
    if (shifted <= allowed) return;
    const double floor = floor_ == nullptr ? 0 : NoiseFloor::factor * static_cast<double>(floor_->most_shifted());
    result_.excess = std::max(result_.excess, shifted / std::max(allowed, floor));
    if (shifted <= floor) {
      if (result_.mismatched == 0) result_.within_noise = differing_;
      return;
    }
    if (result_.mismatched == 0) keep_first(first_differing_);
    result_.is_shifted = true;
    result_.mismatched = std::max(result_.mismatched, differing_);
  }

  template <class Integer>
  static std::pair<double, double> bounds_of() {
    return {std::numeric_limits<Integer>::lowest(), std::numeric_limits<Integer>::max()};
  }

  Tolerance tolerance_;
  const std::vector<std::int64_t>& dims_;
  ElementTolerance of_element_;
  const NoiseFloor* floor_;
  /// The lowest and the highest value of an 8-bit type; infinite for other types.
  std::pair<double, double> bounds_ = {-infinity, infinity};
  std::int64_t shift_ = 0;  // The number of elements that are higher in the candidate, minus the number of lower ones.
  std::int64_t saturated_ = 0;  // The number of equal elements that are a bound of the type.
  SumOfSquares product_ = 0;
  SumOfSquares squares_reference_ = 0;
  SumOfSquares squares_candidate_ = 0;
  SumOfSquares squares_error_ = 0;
  std::int64_t others_ = 0;      // The number of differing integers without a magnitude.
  std::int64_t unexpected_ = 0;  // The number of these that no draw changed.
  std::int64_t unseen_ = 0;      // The number of these that draws changed, but not to this integer.
  std::int64_t differing_ = 0;   // The number of elements that are not equal.
  Element first_differing_;
  std::optional<std::int64_t> first_position_;
  // The sum of squares that the floor allows, if Tolerance::least_snr_db is judged.
  SumOfSquares squares_floor_ = 0;
  bool finite_ = true;
  std::optional<std::int64_t> max_absolute_at_;
  std::optional<std::int64_t> max_relative_at_;
  Difference result_;
};

Difference other_dims(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
  Difference result;
  result.incomparable =
      fmt::format("dimensions differ: {} in the reference, {} in the candidate", reference.dims, candidate.dims);
  return result;
}

/// Returns whether a size is plausible given the sizes that `draws` records for the noisy runs: it lies in their range,
/// widened at both ends by the width of the range.
bool is_near(std::int64_t size, const SelectionDifference& draws) {
  const std::int64_t spread = draws.highest - draws.lowest;
  return size >= draws.lowest - spread && size <= draws.highest + spread;
}

/// Compares two tensors whose size along one axis depends on rounding, such as the boxes that a detector keeps, without
/// regard to the order of their elements. The number of elements without a partner in the other tensor may be
/// NoiseFloor::factor times as high as between two noisy runs, but not more than half of all elements; the number
/// between the noisy runs itself is always allowed.
Difference compare_selections(const onnx::TensorData& reference, const onnx::TensorData& candidate,
                              const Tolerance& tolerance, const NoiseFloor& floor) {
  const std::optional<SelectionDifference> draws = floor.selection();
  const auto axis = only_other_axis(reference.dims, candidate.dims);
  const bool is_comparable = draws && is_real(candidate.type) &&
                             (reference.dims == candidate.dims || (axis == draws->axis)) &&
                             is_near(candidate.dims[draws->axis], *draws);
  if (!is_comparable) {
    Difference result =
        reference.dims == candidate.dims ? compare(reference, candidate, tolerance) : other_dims(reference, candidate);
    if (draws && !result.incomparable.empty()) {
      result.incomparable += fmt::format("; with rounding alone the reference has {} to {} elements along axis {}",
                                         draws->lowest, draws->highest, draws->axis);
    }
    return result;
  }
  const Partners partners = find_partners(reference, candidate, draws->axis, tolerance);
  Difference result;
  result.selection = draws;
  result.selection->without_partner = partners.without;
  result.count = std::max(reference.element_count(), candidate.element_count());
  result.finite = partners.finite;
  result.nan_disagreements = partners.nan_on_one_side;
  result.max_absolute = partners.largest_difference;
  const std::int64_t half = result.count / 2;
  const std::int64_t several = static_cast<std::int64_t>(NoiseFloor::factor) * draws->between_draws;
  const std::int64_t allowed = std::max(draws->between_draws, std::min(several, half));
  result.excess = allowed == 0 ? (partners.without == 0 ? 0 : infinity)
                               : static_cast<double>(partners.without) / static_cast<double>(allowed);
  if (partners.without > allowed || partners.nan_on_one_side != 0) {
    result.mismatched = partners.without;
  } else {
    result.within_noise = partners.without;
  }
  return result;
}

double epsilon_of(onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::f32:
    case onnx::ElementType::f64: return std::ldexp(1.0, -23);  // OpenVINO and TensorRT compute f64 in f32.
    case onnx::ElementType::f16: return std::ldexp(1.0, -10);
    case onnx::ElementType::bf16: return std::ldexp(1.0, -7);
    case onnx::ElementType::f8e4m3fn:
    case onnx::ElementType::f8e4m3fnuz: return std::ldexp(1.0, -3);
    case onnx::ElementType::f8e5m2:
    case onnx::ElementType::f8e5m2fnuz: return std::ldexp(1.0, -2);
    default: return 0;
  }
}

Tolerance of_epsilons(onnx::ElementType type, bool quantized, double in_f32, double of_largest_in_f32) {
  if (type == onnx::ElementType::i8 || type == onnx::ElementType::u8) {
    return {.relative = 0, .absolute = quantized ? 1.0 : 0.0, .of_largest = 0, .is_step = quantized};
  }
  const double epsilon = epsilon_of(type);
  const bool wide = type == onnx::ElementType::f32 || type == onnx::ElementType::f64;
  return {.relative = (wide ? in_f32 : 2) * epsilon,
          .absolute = 0,
          .of_largest = (wide ? of_largest_in_f32 : 1) * epsilon,
          .by_slice = wide};
}

/// Follows input 0 of the nodes that have one of `traits`, from `value` backwards, and returns the first value whose
/// node has none of them. This may be `value` itself.
const onnx::Value* before_all(const onnx::Value& value, onnx::Traits traits) {
  const onnx::Value* at = &value;
  while (at->producer != nullptr && has_trait(*at->producer, traits) && at->producer->input(0) != nullptr) {
    at = at->producer->input(0);
  }
  return at;
}

/// Returns the type of a value: the declared type, or the type of the constant or Cast that computes it. Returns
/// nothing if none of these is known.
std::optional<onnx::ElementType> type_of(const onnx::Value& value) {
  if (value.type) return value.type;
  if (value.initializer) return value.initializer->type;
  if (value.producer == nullptr) return std::nullopt;
  constexpr std::int64_t unknown = 0;
  if (value.producer->is("Cast")) return static_cast<onnx::ElementType>(value.producer->int_or("to", unknown));
  const auto constant = value.constant();
  return constant ? std::optional(constant->type) : std::nullopt;
}

/// Returns the type if it is f16, bf16 or another narrow floating-point type, and f32 for every other type.
onnx::ElementType narrow_or_f32(std::optional<onnx::ElementType> type) {
  return onnx::is_low_precision(type) ? *type : onnx::ElementType::f32;
}

onnx::ElementType coarser(onnx::ElementType a, onnx::ElementType b) { return epsilon_of(b) > epsilon_of(a) ? b : a; }

class NarrowTypeFinder {
 public:
  explicit NarrowTypeFinder(const onnx::Model& model) : model_(model) {}

  NarrowTypes run() {
    for (const onnx::Value* value : model_.graph().values()) {
      if (value->producer == nullptr) add(*value, narrow_or_f32(type_of(*value)));
    }
    for (const onnx::Node* node : model_.graph().nodes()) {
      const onnx::ElementType inside = type_in(*node);
      for (const onnx::Value* output : node->outputs) {
        if (output != nullptr) add(*output, coarser(inside, narrow_or_f32(type_of(*output))));
      }
    }
    return std::move(narrow_);
  }

 private:
  void add(const onnx::Value& value, onnx::ElementType type) {
    if (type != onnx::ElementType::f32) narrow_.emplace(&value, type);
  }

  /// Returns the narrowest floating-point type among a node's inputs and the nodes in its bodies and in the function
  /// that it calls.
  [[nodiscard]] onnx::ElementType type_in(const onnx::Node& node) const {
    onnx::ElementType type = onnx::ElementType::f32;
    for (const onnx::Value* input : node.inputs) {
      if (input == nullptr) continue;
      const auto found = narrow_.find(input);
      type = coarser(type, found == narrow_.end() ? narrow_or_f32(type_of(*input)) : found->second);
    }
    const auto look = [&](const onnx::Node& inner) { type = coarser(type, type_of_outputs(inner, type_in(inner))); };
    for (const onnx::Graph* body : node.subgraphs()) {
      for (const onnx::Node* inner : body->nodes()) look(*inner);
    }
    if (const onnx::FunctionDefinition* function = model_.find_function(node)) {
      for (const onnx::Node* inner : function->body->nodes()) look(*inner);
    }
    return type;
  }

  static onnx::ElementType type_of_outputs(const onnx::Node& node, onnx::ElementType type) {
    for (const onnx::Value* output : node.outputs) {
      if (output != nullptr) type = coarser(type, narrow_or_f32(type_of(*output)));
    }
    return type;
  }

  const onnx::Model& model_;
  NarrowTypes narrow_;
};

}  // namespace

double ElementTolerance::at(std::int64_t position, double number) {
  const double own = tolerance_.absolute + tolerance_.relative * std::abs(number);
  if (tolerance_.of_largest == 0) return own;
  if (!largest_) {
    largest_ = largest_of_slices(*reference_, tolerance_.by_slice ? fewest_of_slice : reference_->element_count());
  }
  // A slice of zeros may contain the remainder of an underflow in the other tensor.
  const double least = std::ldexp(largest_->whole(), -23);
  return own + tolerance_.of_largest * std::max(largest_->at(position), least);
}

Tolerance rewrite_tolerance(onnx::ElementType type, bool quantized) { return of_epsilons(type, quantized, 64, 32); }
Tolerance network_tolerance(onnx::ElementType type, bool quantized) { return of_epsilons(type, quantized, 1024, 256); }

bool is_quantized(const onnx::Value& value) {
  const onnx::Node* node = before_all(value, onnx::trait::moves_data)->producer;
  return node != nullptr && (has_trait(*node, onnx::trait::quantizes) || find_operator_for(*node));
}

bool quantizes(const onnx::Model& model) {
  bool found = false;
  model.graph().for_each_node(
      [&](const onnx::Node& node) { found = found || has_trait(node, onnx::trait::quantizes); });
  return found;
}

NarrowTypes narrow_types(const onnx::Model& model) { return NarrowTypeFinder(model).run(); }

onnx::ElementType rounding_type(const NarrowTypes& narrow, const onnx::Value& value, onnx::ElementType own) {
  const auto found = narrow.find(&value);
  return found == narrow.end() || !is_floating_point(own) ? own : coarser(own, found->second);
}

const onnx::Value* mean_of(const onnx::Value& value) {
  const onnx::Node* node = before_all(value, onnx::trait::rearranges)->producer;
  if (node == nullptr || !is_any_of(*node, {"ReduceMean", "GlobalAveragePool"}) || node->input(0) == nullptr)
    return nullptr;
  return before_all(*node->input(0), onnx::trait::rearranges);
}

double largest_finite(const onnx::TensorData& tensor) {
  double largest = 0;
  const std::int64_t count = tensor.element_count();
  for (std::int64_t begin = 0; begin < count; begin += piece_size) {
    const auto values = piece_of(tensor, begin, std::min(piece_size, count - begin)).numbers();
    for (const double value : *values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  return largest;
}

bool is_worse(const Difference& one, const Difference& other) {
  const auto badness = [](const Difference& d) {
    return std::tuple(!d.incomparable.empty(), d.mismatched != 0, d.undecided != 0, d.within_noise != 0, d.excess);
  };
  return !(badness(one) <= badness(other));  // An excess that is NaN counts as worse.
}

Partners find_partners(const onnx::TensorData& reference, const onnx::TensorData& other, std::size_t axis,
                       const Tolerance& tolerance) {
  Partners partners;
  const auto left = reference.numbers();
  const auto right = other.numbers();
  if (!left || !right) throw Error(Error::Kind::internal, "find_partners: the tensors are not numeric");
  const double of_largest = tolerance.of_largest > 0 ? tolerance.of_largest * largest_finite(reference) : 0;
  const auto product = [&](std::size_t begin, std::size_t end) {
    return std::accumulate(reference.dims.begin() + static_cast<std::ptrdiff_t>(begin),
                           reference.dims.begin() + static_cast<std::ptrdiff_t>(end), std::size_t{1},
                           [](std::size_t a, std::int64_t b) { return a * static_cast<std::size_t>(b); });
  };
  const std::size_t inner = product(axis + 1, reference.dims.size());
  const std::size_t outer = product(0, axis);
  const bool is_exact = tolerance.relative == 0 && tolerance.absolute == 0;
  if (is_exact && is_whole(reference.type) && is_whole(other.type)) {
    // The integers of one selected element belong together: row and column for NonZero, image and box for a selection
    // of boxes.
    const auto tuples = [&](const std::vector<double>& numbers, std::int64_t size) {
      std::vector<std::vector<double>> result(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        result[i / inner % static_cast<std::size_t>(size)].push_back(numbers[i]);
      }
      std::sort(result.begin(), result.end());
      return result;
    };
    const auto a = tuples(*left, reference.dims[axis]);
    const auto b = tuples(*right, other.dims[axis]);
    std::vector<std::vector<double>> alone;
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(alone));
    const auto width = static_cast<std::int64_t>(outer * inner);
    partners.without = width * std::ssize(alone);
    partners.finite = width * (std::ssize(a) + std::ssize(b) - std::ssize(alone)) / 2;
    return partners;
  }
  /// Returns the elements of slice number `slice` along the axis in ascending order, without NaN. `size` is the size of
  /// the axis.
  const auto sorted = [&](const std::vector<double>& numbers, std::int64_t size, std::size_t slice) {
    std::vector<double> result;
    const std::size_t first = slice / inner * static_cast<std::size_t>(size) * inner + slice % inner;
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
      const double number = numbers[first + i * inner];
      if (!std::isnan(number)) result.push_back(number);
    }
    std::sort(result.begin(), result.end());
    return result;
  };
  for (std::size_t slice = 0; slice < outer * inner; ++slice) {
    const std::vector<double> a = sorted(*left, reference.dims[axis], slice);
    const std::vector<double> b = sorted(*right, other.dims[axis], slice);
    const std::int64_t nan = reference.dims[axis] - std::ssize(a);
    const std::int64_t other_nan = other.dims[axis] - std::ssize(b);
    partners.nan_on_one_side += std::max<std::int64_t>(other_nan - nan, 0);
    partners.without += std::abs(other_nan - nan);
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
      const double difference = a[i] == b[j] ? 0 : std::abs(a[i] - b[j]);
      if (difference <= tolerance.absolute + tolerance.relative * std::abs(a[i]) + of_largest &&
          difference < infinity) {
        partners.largest_difference = std::max(partners.largest_difference, difference);
        if (std::isfinite(a[i])) ++partners.finite;
        ++i;
        ++j;
      } else {
        ++partners.without;
        ++(a[i] < b[j] ? i : j);
      }
    }
    partners.without += static_cast<std::int64_t>(a.size() - i + b.size() - j);
  }
  return partners;
}

Difference compare(const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance,
                   const NoiseFloor* floor) {
  // If the number of elements depends on rounding, the remaining elements change their positions: a noise floor by
  // position is not applicable.
  if (floor != nullptr && floor->has_other_dims()) {
    if (reference.dims == candidate.dims) {
      Difference result = compare(reference, candidate, tolerance);
      if (result.equal()) return result;
    }
    return compare_selections(reference, candidate, tolerance, *floor);
  }
  if (reference.dims != candidate.dims) return other_dims(reference, candidate);
  Difference result;
  const std::int64_t count = reference.element_count();
  const bool whole = is_whole(reference.type) && is_whole(candidate.type);
  const bool has_steps = reference.type == onnx::ElementType::i8 || reference.type == onnx::ElementType::u8;
  if (!is_real(reference.type) || !is_real(candidate.type)) {
    if (!reference.same_as(candidate)) {
      result.incomparable = fmt::format("{} cannot be compared with {}", onnx::to_string(reference.type),
                                        onnx::to_string(candidate.type));
    } else {
      result.finite = count;
    }
    result.count = count;
    return result;
  }

  const bool reference_is_u64 = reference.type == onnx::ElementType::u64;
  const bool candidate_is_u64 = candidate.type == onnx::ElementType::u64;
  Comparison comparison(tolerance, reference, floor);
  for (std::int64_t begin = 0; begin < count; begin += piece_size) {
    const std::int64_t size = std::min(piece_size, count - begin);
    const onnx::TensorData a = piece_of(reference, begin, size);
    const onnx::TensorData b = piece_of(candidate, begin, size);
    if (whole) {
      const auto left = a.ints();
      const auto right = b.ints();
      for (std::size_t i = 0; i < left->size(); ++i) {
        comparison.whole({(*left)[i], reference_is_u64}, {(*right)[i], candidate_is_u64});
      }
    } else {
      const auto left = a.numbers();
      const auto right = b.numbers();
      for (std::size_t i = 0; i < left->size(); ++i) comparison.real((*left)[i], (*right)[i]);
    }
  }
  Difference found = comparison.finish();
  if (const auto first = comparison.first_position(); whole && first) {
    found.first_integers.emplace(integer_at(reference, *first).to_string(), integer_at(candidate, *first).to_string());
  }
  found.is_choice = whole && !has_steps && tolerance.relative == 0 && tolerance.absolute == 0;
  return found;
}

}  // namespace graft::verify
