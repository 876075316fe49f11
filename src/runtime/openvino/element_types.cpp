// The table of element types that ONNX and OpenVINO share.
#include "runtime/openvino/element_types.hpp"

#include <array>
#include <utility>

namespace graft::runtime {
namespace {

constexpr std::array<std::pair<onnx::ElementType, ov::element::Type_t>, 22> pairs{{
    {onnx::ElementType::f32, ov::element::Type_t::f32},
    {onnx::ElementType::u8, ov::element::Type_t::u8},
    {onnx::ElementType::i8, ov::element::Type_t::i8},
    {onnx::ElementType::u16, ov::element::Type_t::u16},
    {onnx::ElementType::i16, ov::element::Type_t::i16},
    {onnx::ElementType::i32, ov::element::Type_t::i32},
    {onnx::ElementType::i64, ov::element::Type_t::i64},
    {onnx::ElementType::string, ov::element::Type_t::string},
    {onnx::ElementType::boolean, ov::element::Type_t::boolean},
    {onnx::ElementType::f16, ov::element::Type_t::f16},
    {onnx::ElementType::f64, ov::element::Type_t::f64},
    {onnx::ElementType::u32, ov::element::Type_t::u32},
    {onnx::ElementType::u64, ov::element::Type_t::u64},
    {onnx::ElementType::bf16, ov::element::Type_t::bf16},
    {onnx::ElementType::f8e4m3fn, ov::element::Type_t::f8e4m3},
    {onnx::ElementType::f8e5m2, ov::element::Type_t::f8e5m2},
    {onnx::ElementType::u4, ov::element::Type_t::u4},
    {onnx::ElementType::i4, ov::element::Type_t::i4},
    {onnx::ElementType::f4e2m1, ov::element::Type_t::f4e2m1},
    {onnx::ElementType::f8e8m0, ov::element::Type_t::f8e8m0},
    {onnx::ElementType::u2, ov::element::Type_t::u2},
    {onnx::ElementType::undefined, ov::element::Type_t::dynamic},
}};

}  // namespace

onnx::ElementType from_openvino(const ov::element::Type& type) {
  for (const auto& [onnx, openvino] : pairs) {
    if (type == openvino) return onnx;
  }
  return onnx::ElementType::undefined;
}

ov::element::Type to_openvino(onnx::ElementType type) {
  for (const auto& [onnx, openvino] : pairs) {
    if (type == onnx) return openvino;
  }
  return ov::element::Type_t::dynamic;
}

}  // namespace graft::runtime
