// Shapes: symbolic shapes for shape inference, and concrete extents for kernels.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/status.hpp"

namespace graft {

/// A dimension of a shape: a constant, a named unknown, or an expression of constants and unknowns.
///
/// A definition computes its output shapes once, with the functions below. TensorRT's dimension expressions, ONNX's
/// symbolic dimensions and integers are all converted to and from this type. Expressions of constants are computed at
/// once. Arithmetic on constants that exceeds 64 bits throws std::overflow_error; a division by the constant zero
/// throws std::domain_error.
class Dim {
 public:
  enum class Kind : std::uint8_t {
    constant,
    symbol,
    add,
    subtract,
    multiply,
    minimum,
    maximum,
    floor_divide,
    ceil_divide,
    equal,      ///< The integer 1 if both sides are equal, otherwise 0.
    less,       ///< The integer 1 if the left side is smaller, otherwise 0.
    data_size,  ///< The value of a size output; see data_size() below.
  };

  Dim(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor): a number is a dimension
  [[nodiscard]] static Dim symbol(std::string name);

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is_constant() const { return node_ == nullptr; }
  /// Returns the value of a constant. The result is meaningless for other kinds.
  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] const std::string& name() const;  ///< Returns the name of a symbol. Valid only for Kind::symbol.
  /// Returns the left operand of an expression; for Kind::data_size, the size with which TensorRT times kernels.
  [[nodiscard]] const Dim& left() const;
  /// Returns the right operand of an expression; for Kind::data_size, the largest possible size.
  [[nodiscard]] const Dim& right() const;
  /// Returns the index of the size output among all outputs. Valid only for Kind::data_size.
  [[nodiscard]] std::size_t size_output() const { return static_cast<std::size_t>(value_); }

  /// Returns the dimension as messages show it: "8", "batch", "(height * 2)".
  [[nodiscard]] std::string to_string() const;

  /// Returns the value of the dimension if `value_of` returns the value of each symbol in it, otherwise nothing. Also
  /// returns nothing for Kind::data_size, because the kernel computes that size from the data.
  [[nodiscard]] std::optional<std::int64_t> evaluate(
      const std::function<std::optional<std::int64_t>(const std::string&)>& value_of) const;

  /// Returns whether both dimensions have the same structure and names. Different expressions are unequal even if their
  /// values are always equal.
  friend bool operator==(const Dim& a, const Dim& b);

  [[nodiscard]] static Dim make(Kind kind, const Dim& left, const Dim& right);

  /// Returns the value of a constant. For Kind::data_size, returns the largest possible size if that is a constant.
  /// Returns nothing for any other dimension.
  [[nodiscard]] std::optional<std::int64_t> largest() const;

 private:
  friend Dim data_size(std::size_t output, const Dim& optimum, const Dim& largest);
  struct Node;
  std::shared_ptr<const Node> node_;
  std::int64_t value_ = 0;
};

[[nodiscard]] Dim operator+(const Dim& a, const Dim& b);
[[nodiscard]] Dim operator-(const Dim& a, const Dim& b);
[[nodiscard]] Dim operator*(const Dim& a, const Dim& b);
[[nodiscard]] Dim min(const Dim& a, const Dim& b);
[[nodiscard]] Dim max(const Dim& a, const Dim& b);
[[nodiscard]] Dim floor_div(const Dim& a, const Dim& b);
[[nodiscard]] Dim ceil_div(const Dim& a, const Dim& b);
[[nodiscard]] Dim equal(const Dim& a, const Dim& b);
[[nodiscard]] Dim less(const Dim& a, const Dim& b);

/// Returns a dimension that depends on data: the operator writes its value to the size output `output` (counted among
/// all outputs) when it runs. TensorRT times kernels with `optimum` and allocates memory for `largest`. Throws
/// std::domain_error if `optimum` or `largest` depends on data. The result cannot be part of an expression, which
/// throws std::domain_error.
[[nodiscard]] Dim data_size(std::size_t output, const Dim& optimum, const Dim& largest);

using Shape = std::vector<Dim>;

/// Returns the shape as messages show it: "[batch, 3, 8, 8]". An unnamed dimension is "?".
[[nodiscard]] std::string to_string(const Shape& shape);

/// A concrete shape of at most 8 dimensions (TensorRT's limit). It allocates no memory, so kernels can copy it.
class Extents {
 public:
  static constexpr int max_rank = 8;

  Extents() = default;
  Extents(std::initializer_list<std::int64_t> values);
  /// Creates extents from `values`. Returns invalid_argument if there are more than max_rank values or a value is
  /// negative.
  [[nodiscard]] static Status make(const std::vector<std::int64_t>& values, Extents& result);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::int64_t operator[](int index) const { return values_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] std::int64_t& operator[](int index) { return values_[static_cast<std::size_t>(index)]; }
  void push_back(std::int64_t value);

  [[nodiscard]] const std::int64_t* begin() const { return values_.data(); }
  [[nodiscard]] const std::int64_t* end() const { return values_.data() + rank_; }

  /// Returns the product of all dimensions, which is 1 for a scalar. Saturates at the largest 64-bit integer.
  [[nodiscard]] std::int64_t element_count() const;

  friend bool operator==(const Extents& a, const Extents& b);

 private:
  std::array<std::int64_t, max_rank> values_{};
  int rank_ = 0;
};

/// Returns "1x3x8x8", or "scalar" for rank 0.
[[nodiscard]] std::string to_string(const Extents& extents);

}  // namespace graft
