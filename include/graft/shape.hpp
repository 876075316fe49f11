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

#include "graft/status.hpp"

namespace graft {

/// One dimension of a shape: a constant, a named unknown, or an expression over those.
///
/// Operators write their shape inference once, with the operators below; TensorRT's dimension expressions, ONNX's
/// symbolic dimensions and plain integers all enter and leave through this type. Constants fold as they are made.
/// Arithmetic on constants that leaves 64 bits throws std::overflow_error; a division by the constant zero throws
/// std::domain_error.
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
    data_size,  ///< What a size output will say; see data_size() below.
  };

  Dim(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor): a number is a dimension
  [[nodiscard]] static Dim symbol(std::string name);

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is_constant() const { return node_ == nullptr; }
  [[nodiscard]] std::int64_t value() const { return value_; }  ///< Of a constant.
  [[nodiscard]] const std::string& name() const;               ///< Of a symbol.
  [[nodiscard]] const Dim& left() const;                       ///< Of an expression; the optimum of a data size.
  [[nodiscard]] const Dim& right() const;                      ///< Of an expression; the largest value of a data size.
  [[nodiscard]] std::size_t size_output() const { return static_cast<std::size_t>(value_); }  ///< Of a data size.

  /// "8", "batch", "(height * 2)".
  [[nodiscard]] std::string to_string() const;

  /// Its value, once every symbol has one; nothing if `value_of` knows a symbol not, and of a data size.
  [[nodiscard]] std::optional<std::int64_t> evaluate(
      const std::function<std::optional<std::int64_t>(const std::string&)>& value_of) const;

  /// Same structure and names; two different expressions of equal value are not the same.
  friend bool operator==(const Dim& a, const Dim& b);

  [[nodiscard]] static Dim make(Kind kind, const Dim& left, const Dim& right);

  /// The value of a constant; the largest of a data size whose largest is constant; nothing for any other.
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

/// A size that only the data decide: the operator writes it to its size output `output` (counted among all outputs)
/// when it runs. `optimum` is what TensorRT times kernels with, `largest` what memory is set aside for; neither depends
/// on data. It is a dimension by itself: an expression that contains one throws std::domain_error.
[[nodiscard]] Dim data_size(std::size_t output, const Dim& optimum, const Dim& largest);

using Shape = std::vector<Dim>;

/// "[batch, 3, 8, 8]".
[[nodiscard]] std::string to_string(const Shape& shape);

/// A concrete shape of at most 8 dimensions (TensorRT's limit). Holds no heap memory, so kernels copy it freely.
class Extents {
 public:
  static constexpr int max_rank = 8;

  Extents() = default;
  Extents(std::initializer_list<std::int64_t> values);
  /// Fails if there are more than max_rank values or a negative one.
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

/// "1x3x8x8"; "scalar" for rank 0.
[[nodiscard]] std::string to_string(const Extents& extents);

}  // namespace graft
