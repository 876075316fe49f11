// Shapes: symbolic ones for shape inference, and concrete ones for kernels.
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
    equal,      ///< 1 where both sides are the same, else 0.
    less,       ///< 1 where the left side is smaller, else 0.
    data_size,  ///< The value of a size output; see data_size() below.
  };

  Dim(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor): a number is a dimension
  [[nodiscard]] static Dim symbol(std::string name);

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is_constant() const { return node_ == nullptr; }
  /// The value of a constant; meaningless for other kinds.
  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] const std::string& name() const;  ///< The name of a symbol; only for Kind::symbol.
  [[nodiscard]] const Dim& left() const;          ///< The left side of an expression; the optimum of a data size.
  [[nodiscard]] const Dim& right() const;  ///< The right side of an expression; the largest value of a data size.
  /// The index of the size output, counted among all outputs; only for Kind::data_size.
  [[nodiscard]] std::size_t size_output() const { return static_cast<std::size_t>(value_); }

  /// Returns the dimension as messages show it: "8", "batch", "(height * 2)".
  [[nodiscard]] std::string to_string() const;

  /// Returns the value with the symbols' values from `value_of`, or nothing where `value_of` returns nothing for a
  /// symbol. A data size has no value.
  [[nodiscard]] std::optional<std::int64_t> evaluate(
      const std::function<std::optional<std::int64_t>(const std::string&)>& value_of) const;

  /// Returns whether structure and names are the same. Two different expressions of equal value are not equal.
  friend bool operator==(const Dim& a, const Dim& b);

  [[nodiscard]] static Dim make(Kind kind, const Dim& left, const Dim& right);

  /// Returns the value of a constant, or the constant upper bound of a data size; nothing otherwise.
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
/// all outputs) when it runs. TensorRT times kernels with `optimum` and allocates memory for `largest`; neither may
/// depend on data (std::domain_error). The result cannot be part of an expression, which throws std::domain_error.
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
  /// Returns invalid_argument if there are more than max_rank values or a negative one.
  [[nodiscard]] static Status make(const std::vector<std::int64_t>& values, Extents& result);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::int64_t operator[](int index) const { return values_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] std::int64_t& operator[](int index) { return values_[static_cast<std::size_t>(index)]; }
  void push_back(std::int64_t value);

  [[nodiscard]] const std::int64_t* begin() const { return values_.data(); }
  [[nodiscard]] const std::int64_t* end() const { return values_.data() + rank_; }

  /// Product of all dimensions, 1 for a scalar. Saturates at the largest 64-bit integer.
  [[nodiscard]] std::int64_t element_count() const;

  friend bool operator==(const Extents& a, const Extents& b);

 private:
  std::array<std::int64_t, max_rank> values_{};
  int rank_ = 0;
};

/// Returns "1x3x8x8", or "scalar" for rank 0.
[[nodiscard]] std::string to_string(const Extents& extents);

}  // namespace graft
