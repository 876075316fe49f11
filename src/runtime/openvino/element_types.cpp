// The table of element types that ONNX and OpenVINO share.
#include "runtime/openvino/element_types.hpp"

#include <array>
#include <utility>

namespace graft {
namespace {

constexpr std::array<std::pair<ElementType, ov::element::Type_t>, 22> pairs{{
    {ElementType::f32, ov::element::Type_t::f32},         {ElementType::u8, ov::element::Type_t::u8},
    {ElementType::i8, ov::element::Type_t::i8},           {ElementType::u16, ov::element::Type_t::u16},
    {ElementType::i16, ov::element::Type_t::i16},         {ElementType::i32, ov::element::Type_t::i32},
    {ElementType::i64, ov::element::Type_t::i64},         {ElementType::string, ov::element::Type_t::string},
    {ElementType::boolean, ov::element::Type_t::boolean}, {ElementType::f16, ov::element::Type_t::f16},
    {ElementType::f64, ov::element::Type_t::f64},         {ElementType::u32, ov::element::Type_t::u32},
    {ElementType::u64, ov::element::Type_t::u64},         {ElementType::bf16, ov::element::Type_t::bf16},
    {ElementType::f8e4m3fn, ov::element::Type_t::f8e4m3}, {ElementType::f8e5m2, ov::element::Type_t::f8e5m2},
    {ElementType::u4, ov::element::Type_t::u4},           {ElementType::i4, ov::element::Type_t::i4},
    {ElementType::f4e2m1, ov::element::Type_t::f4e2m1},   {ElementType::f8e8m0, ov::element::Type_t::f8e8m0},
    {ElementType::u2, ov::element::Type_t::u2},           {ElementType::undefined, ov::element::Type_t::dynamic},
}};

}  // namespace

ElementType from_openvino(const ov::element::Type& type) {
  for (const auto& [onnx, openvino] : pairs) {
    if (type == openvino) return onnx;
  }
  return ElementType::undefined;
}

ov::element::Type to_openvino(ElementType type) {
  for (const auto& [onnx, openvino] : pairs) {
    if (type == onnx) return openvino;
  }
  return ov::element::Type_t::dynamic;
}

}  // namespace graft
