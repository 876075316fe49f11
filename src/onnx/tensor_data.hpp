// The constant tensors of a model: element type, dimensions and bytes, for every type that ONNX defines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/dtype.hpp"

namespace graft::onnx {

/// ONNX's element types, with ONNX's codes. A code that is newer than this list is preserved.
enum class ElementType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
  f6e2m3 = 27,
  f6e3m2 = 28,
};

/// Returns a name such as "f32", "bool" or "string"; "type 99" for a code that is not in the list.
[[nodiscard]] std::string to_string(ElementType type);
/// Returns the type for Graft's name ("f32") or ONNX's ("float", "FLOAT", "int64"); nothing for any other string.
[[nodiscard]] std::optional<ElementType> parse_element_type(std::string_view text);
/// Returns the corresponding type of Graft's kernels, or nothing if they do not support it.
[[nodiscard]] std::optional<DType> to_dtype(ElementType type);
[[nodiscard]] ElementType to_element_type(DType dtype);
/// Returns the size of an element in raw data in bits (4-bit elements are packed in pairs); 0 for strings and unknown
/// codes.
[[nodiscard]] int bits_of(ElementType type);
/// Returns whether TensorData::numbers can read elements of this type.
[[nodiscard]] bool has_numbers(ElementType type);
[[nodiscard]] bool is_floating_point(ElementType type);
/// Returns whether the type is a signed or unsigned integer. Booleans do not count.
[[nodiscard]] bool is_integer(ElementType type);

/// A shared, read-only block of memory: an owned string, or a part of a mapped file.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::string owned);
  Bytes(std::shared_ptr<const void> owner, std::span<const char> view) : owner_(std::move(owner)), view_(view) {}

  [[nodiscard]] const char* data() const { return view_.data(); }
  [[nodiscard]] std::size_t size() const { return view_.size(); }
  [[nodiscard]] std::string_view view() const { return {view_.data(), view_.size()}; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const char> view_;
};

/// A constant tensor. Copies share the bytes.
struct TensorData {
  ElementType type = ElementType::undefined;
  std::vector<std::int64_t> dims;  ///< The dimensions; empty for a scalar. Never negative in a model that was read.
  /// The elements, row-major and little endian, as in ONNX's raw_data. Empty for strings.
  Bytes bytes;
  std::shared_ptr<const std::vector<std::string>> strings;  ///< The elements of a string tensor; null for other types.
  std::string name;       ///< The name of a tensor inside an attribute; an initializer has the name of its value.
  bool external = false;  ///< Whether the tensor was read from an external data file.
  std::string opaque;     ///< Protobuf fields that Graft does not model (doc string, metadata), in wire form.

  /// Returns the product of dims, which is 1 for a scalar. Throws Error if it exceeds 64 bits.
  [[nodiscard]] std::int64_t element_count() const;

  /// Returns the value of a tensor with exactly one real number, integer or boolean, of any rank; otherwise nothing.
  [[nodiscard]] std::optional<double> scalar() const;
  /// Returns all elements of an integer or boolean tensor; nothing for other types.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints() const;
  /// Returns all elements of a real, integer or boolean tensor, rounded to double; nothing for other types.
  [[nodiscard]] std::optional<std::vector<double>> numbers() const;

  /// Returns a text such as "f32[2, 10]".
  [[nodiscard]] std::string type_and_shape() const;
  /// Returns whether type, dims and elements are equal.
  [[nodiscard]] bool same_as(const TensorData& other) const;

  /// Returns an i64 tensor of one dimension.
  [[nodiscard]] static TensorData from_ints(const std::vector<std::int64_t>& values);
  /// Returns an f32 tensor of one dimension.
  [[nodiscard]] static TensorData from_floats(const std::vector<float>& values);
  /// Returns a tensor of one dimension.
  [[nodiscard]] static TensorData from_strings(std::vector<std::string> values);
  /// Creates a tensor by rounding each number to the type (to nearest even). Throws Error for a type that cannot
  /// represent real numbers, or if the number of elements does not match the dims.
  [[nodiscard]] static TensorData from_numbers(ElementType type, std::vector<std::int64_t> dims,
                                               const std::vector<double>& values);
  [[nodiscard]] static TensorData scalar_of(ElementType type, double value);
};

/// Returns a text such as "f32[2, 3] {0.1, 0.2, ...}", with at most `elements` of the elements.
[[nodiscard]] std::string to_string(const TensorData& tensor, std::size_t elements = 8);

}  // namespace graft::onnx
