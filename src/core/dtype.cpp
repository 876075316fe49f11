// Names of element types and layouts.
#include "graft/operator/dtype.hpp"

#include <array>
#include <utility>

#include "graft/operator/layout.hpp"

namespace graft {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 9> dtype_names{{
    {DType::f32, "f32"},
    {DType::f16, "f16"},
    {DType::bf16, "bf16"},
    {DType::i8, "i8"},
    {DType::u8, "u8"},
    {DType::i32, "i32"},
    {DType::i64, "i64"},
    {DType::boolean, "bool"},
    {DType::f8e4m3fn, "f8e4m3fn"},
}};

}  // namespace

std::string_view to_string(DType dtype) {
  for (const auto& [value, name] : dtype_names) {
    if (value == dtype) return name;
  }
  return "unknown";
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const auto& [value, name] : dtype_names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

std::string_view to_string(Layout layout) {
  switch (layout) {
    case Layout::linear: return "linear";
    case Layout::hwc8: return "hwc8";
    case Layout::chw32: return "chw32";
  }
  return "unknown";
}

}  // namespace graft
