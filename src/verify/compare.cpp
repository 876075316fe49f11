// Comparison in pieces, so that a large tensor is never held in double as a whole.
#include "verify/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "graph/operator_node.hpp"

namespace graft {
namespace {

/// Even, so that a piece of 4-bit numbers begins at a byte.
constexpr std::int64_t piece_size = 1 << 16;
constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_whole(ElementType type) { return is_integer(type) || type == ElementType::boolean; }

TensorData piece_of(const TensorData& tensor, std::int64_t begin, std::int64_t count) {
  const auto bits = static_cast<std::size_t>(bits_of(tensor.type));
  const std::size_t first = static_cast<std::size_t>(begin) * bits / 8;
  const std::size_t size = (static_cast<std::size_t>(count) * bits + 7) / 8;
  TensorData piece;
  piece.type = tensor.type;
  piece.dims = {count};
  piece.bytes = Bytes(nullptr, std::span(tensor.bytes.data() + first, size));
  return piece;
}

std::vector<std::int64_t> index_of(std::int64_t position, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> index(dims.size());
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    index[axis] = position % dims[axis];
    position /= dims[axis];
  }
  return index;
}

std::string text_of(const std::vector<std::int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

double largest_finite(const TensorData& tensor) {
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

class Comparison {
 public:
  Comparison(const Tolerance& tolerance, const std::vector<std::int64_t>& dims, double largest)
      : tolerance_(tolerance), dims_(dims), largest_(largest) {}

  void whole(std::int64_t reference, std::int64_t candidate) {
    double difference = std::abs(static_cast<double>(reference) - static_cast<double>(candidate));
    if (reference != candidate) difference = std::max(difference, 1.0);  // beyond 2^53 neighbours round to one double
    add(static_cast<double>(reference), static_cast<double>(candidate), difference);
  }

  void real(double reference, double candidate) {
    if (std::isnan(reference) != std::isnan(candidate)) {
      ++result_.nan_disagreements;
      mismatch(reference, candidate, infinity);
      ++result_.count;
      finite_ = false;
    } else if (std::isnan(reference) || (std::isinf(reference) && reference == candidate)) {
      ++result_.count;
      finite_ = false;
    } else if (std::isinf(reference) || std::isinf(candidate)) {
      ++result_.infinity_disagreements;
      mismatch(reference, candidate, infinity);
      ++result_.count;
      finite_ = false;
    } else {
      add(reference, candidate, std::abs(reference - candidate));
    }
  }

  Difference finish() {
    if (finite_ && squares_reference_ > 0 && squares_candidate_ > 0) {
      result_.cosine = product_ / (std::sqrt(squares_reference_) * std::sqrt(squares_candidate_));
    }
    return std::move(result_);
  }

 private:
  void add(double reference, double candidate, double difference) {
    product_ += reference * candidate;
    squares_reference_ += reference * reference;
    squares_candidate_ += candidate * candidate;
    result_.max_absolute = std::max(result_.max_absolute, difference);
    if (reference != 0) result_.max_relative = std::max(result_.max_relative, difference / std::abs(reference));
    if (difference > 0) {
      const double allowed =
          tolerance_.absolute + tolerance_.relative * std::abs(reference) + tolerance_.of_largest * largest_;
      const double excess = allowed > 0 ? difference / allowed : infinity;
      result_.excess = std::max(result_.excess, excess);
      if (!(difference <= allowed)) mismatch(reference, candidate, excess);
    }
    ++result_.count;
  }

  void mismatch(double reference, double candidate, double excess) {
    if (result_.mismatched++ == 0) {
      result_.first_index = index_of(result_.count, dims_);
      result_.first_reference = reference;
      result_.first_candidate = candidate;
    }
    result_.excess = std::max(result_.excess, excess);
  }

  Tolerance tolerance_;
  const std::vector<std::int64_t>& dims_;
  double largest_;
  double product_ = 0;
  double squares_reference_ = 0;
  double squares_candidate_ = 0;
  bool finite_ = true;
  Difference result_;
};

double epsilon_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::f64: return std::ldexp(1.0, -23);  // the CPU engine calculates in f32
    case ElementType::f16: return std::ldexp(1.0, -10);
    case ElementType::bf16: return std::ldexp(1.0, -7);
    case ElementType::f8e4m3fn:
    case ElementType::f8e4m3fnuz: return std::ldexp(1.0, -3);
    case ElementType::f8e5m2:
    case ElementType::f8e5m2fnuz: return std::ldexp(1.0, -2);
    default: return 0;
  }
}

Tolerance of_epsilons(ElementType type, bool quantised, double in_f32, double of_largest_in_f32) {
  if (type == ElementType::i8 || type == ElementType::u8) {
    return {.relative = 0, .absolute = quantised ? 1.0 : 0.0, .of_largest = 0};
  }
  const double epsilon = epsilon_of(type);
  const bool wide = type == ElementType::f32 || type == ElementType::f64;
  return {
      .relative = (wide ? in_f32 : 2) * epsilon, .absolute = 0, .of_largest = (wide ? of_largest_in_f32 : 1) * epsilon};
}

}  // namespace

Tolerance Tolerance::of_rewrite(ElementType type, bool quantised) { return of_epsilons(type, quantised, 64, 32); }
Tolerance Tolerance::of_network(ElementType type, bool quantised) { return of_epsilons(type, quantised, 1024, 256); }

bool is_quantised(const Value& value) {
  constexpr std::array<std::string_view, 4> rounding = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv",
                                                        "QLinearMatMul"};
  constexpr std::array<std::string_view, 6> moving = {"Identity", "Reshape", "Transpose",
                                                      "Flatten",  "Squeeze", "Unsqueeze"};
  const Value* at = &value;
  while (at != nullptr && at->producer != nullptr) {
    const Node& node = *at->producer;
    const auto is_one_of = [&](const auto& names) {
      return node.domain.empty() && std::find(names.begin(), names.end(), node.op_type) != names.end();
    };
    if (is_one_of(rounding) || find_operator_for(node)) return true;
    if (!is_one_of(moving)) return false;
    at = node.input(0);
  }
  return false;
}

std::string Difference::to_string() const {
  if (!incomparable.empty()) return incomparable;
  if (equal()) {
    if (max_absolute == 0) return "no difference";
    return fmt::format("largest difference {:.2g} (relative {:.2g})", max_absolute, max_relative);
  }
  std::string text = fmt::format("{} of {} elements differ, first at {}: {:.9g} against {:.9g}", mismatched, count,
                                 text_of(first_index), first_reference, first_candidate);
  if (nan_disagreements != 0) text += fmt::format("; {} are NaN on one side only", nan_disagreements);
  if (infinity_disagreements != 0) text += fmt::format("; {} are infinite on one side only", infinity_disagreements);
  if (max_absolute != 0)
    text += fmt::format("; largest difference {:.2g} (relative {:.2g})", max_absolute, max_relative);
  return text;
}

Difference compare(const TensorData& reference, const TensorData& candidate, const Tolerance& tolerance) {
  Difference result;
  if (reference.dims != candidate.dims) {
    result.incomparable =
        fmt::format("dimensions differ: {} against {}", text_of(reference.dims), text_of(candidate.dims));
    return result;
  }
  const std::int64_t count = reference.element_count();
  const bool whole = is_whole(reference.type) && is_whole(candidate.type);
  const auto is_real = [](ElementType type) { return is_whole(type) || is_floating_point(type); };
  if (!is_real(reference.type) || !is_real(candidate.type)) {
    if (!reference.same_as(candidate)) {
      result.incomparable = fmt::format("{} cannot be compared with {}", graft::to_string(reference.type),
                                        graft::to_string(candidate.type));
    }
    result.count = count;
    return result;
  }

  Comparison comparison(tolerance, reference.dims, tolerance.of_largest > 0 ? largest_finite(reference) : 0);
  for (std::int64_t begin = 0; begin < count; begin += piece_size) {
    const std::int64_t size = std::min(piece_size, count - begin);
    const TensorData a = piece_of(reference, begin, size);
    const TensorData b = piece_of(candidate, begin, size);
    if (whole) {
      const auto left = a.ints();
      const auto right = b.ints();
      for (std::size_t i = 0; i < left->size(); ++i) comparison.whole((*left)[i], (*right)[i]);
    } else {
      const auto left = a.numbers();
      const auto right = b.numbers();
      for (std::size_t i = 0; i < left->size(); ++i) comparison.real((*left)[i], (*right)[i]);
    }
  }
  return comparison.finish();
}

}  // namespace graft
