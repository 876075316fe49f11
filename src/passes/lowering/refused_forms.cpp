// Tests the attributes, types, constants and used outputs of a node.
#include "passes/lowering/refused_forms.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"
#include "onnx/standard_operators.hpp"
#include "passes/lowering/moved_data.hpp"

namespace graft::passes {
namespace {

bool has_type(const onnx::Node& node, std::initializer_list<onnx::ElementType> types) {
  const onnx::Value* input = node.input(0);
  return input != nullptr && input->type && std::find(types.begin(), types.end(), *input->type) != types.end();
}

bool is_any_of(onnx::ElementType type, std::initializer_list<onnx::ElementType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// Returns the rank of a value, or -1 if it is unknown.
std::int64_t rank_of(const onnx::Value* value) { return value == nullptr ? -1 : value->rank().value_or(-1); }

}  // namespace

bool has_large_k(const onnx::Node& top_k) {
  const auto k = onnx::constant_ints(top_k.input(1));
  return k && k->size() == 1 && k->front() > largest_k;
}

bool has_antialias(const onnx::Node& resize) { return resize.int_or("antialias", 0) != 0; }

bool keeps_aspect_ratio(const onnx::Node& resize) {
  return resize.string_or("keep_aspect_ratio_policy", "stretch") != "stretch";
}

bool has_refused_coordinates(const onnx::Node& resize) {
  const std::string mode = resize.string_or("coordinate_transformation_mode", "half_pixel");
  return mode == "tf_crop_and_resize" || mode == "half_pixel_symmetric";
}

bool is_refused_resize(const onnx::Node& resize) {
  return has_antialias(resize) || keeps_aspect_ratio(resize) || has_refused_coordinates(resize);
}

bool has_dilations(const onnx::Node& pooling) {
  const auto dilations = pooling.ints("dilations").value_or(std::vector<std::int64_t>());
  return std::any_of(dilations.begin(), dilations.end(), [](std::int64_t dilation) { return dilation != 1; });
}

bool returns_indices(const onnx::Node& max_pool) { return max_pool.is_output_used(1); }

bool has_other_norm(const onnx::Node& lp_pool) {
  const std::int64_t p = lp_pool.int_or("p", 2);
  return p != 1 && p != 2;
}

bool returns_more_than_attention(const onnx::Node& attention) {
  for (std::size_t i = 1; i < attention.outputs.size(); ++i) {
    if (attention.is_output_used(i)) return true;
  }
  return false;
}

bool has_ignored_masks(const onnx::Node& attention) {
  return attention.input(6) != nullptr || attention.int_or("left_window_size", -1) >= 0 ||
         attention.int_or("right_window_size", -1) >= 0;
}

bool is_masked_and_causal(const onnx::Node& attention) {
  return attention.input(3) != nullptr && attention.int_or("is_causal", 0) != 0;
}

bool has_short_mask(const onnx::Node& attention) {
  const onnx::Value* key = attention.input(1);
  const onnx::Value* mask = attention.input(3);
  if (rank_of(key) != 4 || rank_of(mask) < 1) return false;
  const auto width = onnx::known_size(*mask->shape, -1);
  const auto keys = onnx::known_size(*key->shape, 2);
  return width && keys && *width < *keys;
}

bool has_softmax_precision(const onnx::Node& attention) { return attention.attribute("softmax_precision") != nullptr; }

bool has_scale_without_root(const onnx::Node& multi_head_attention) {
  return multi_head_attention.float_or("scale", 1) <= 0;
}

bool has_mask_filter_value(const onnx::Node& multi_head_attention) {
  return multi_head_attention.attribute("mask_filter_value") != nullptr;
}

bool couples_gates(const onnx::Node& lstm) { return lstm.int_or("input_forget", 0) != 0; }

bool is_batch_first(const onnx::Node& recurrent) { return recurrent.int_or("layout", 0) != 0; }

bool returns_statistics(const onnx::Node& layer_normalization) {
  return layer_normalization.is_output_used(1) || layer_normalization.is_output_used(2);
}

bool has_reduction(const onnx::Node& scatter) { return scatter.string_or("reduction", "none") != "none"; }

bool multiplies_vector_by_matrices(const onnx::Node& mat_mul) {
  return rank_of(mat_mul.input(0)) == 1 && rank_of(mat_mul.input(1)) > 2;
}

bool is_floored_real_mod(const onnx::Node& mod) {
  using enum onnx::ElementType;
  return mod.int_or("fmod", 0) == 0 && has_type(mod, {f32, f16, bf16, f64});
}

bool reads_half(const onnx::Node& node) { return has_type(node, {onnx::ElementType::f16, onnx::ElementType::bf16}); }

bool reads_booleans(const onnx::Node& node) { return has_type(node, {onnx::ElementType::boolean}); }

bool has_uppercase_subscripts(const onnx::Node& einsum) {
  const std::string equation = einsum.string_or("equation", "");
  return std::any_of(equation.begin(), equation.end(), [](char letter) { return letter >= 'A' && letter <= 'Z'; });
}

bool is_strided_and_dilated(const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilations) {
  const auto is_above_1 = [](std::int64_t each) { return each > 1; };
  return std::any_of(strides.begin(), strides.end(), is_above_1) &&
         std::any_of(dilations.begin(), dilations.end(), is_above_1);
}

bool is_refused_quantization(const onnx::Node& node) {
  using enum onnx::ElementType;
  const bool is_dequantize = node.op_type == "DequantizeLinear";
  const onnx::Value* integers = is_dequantize ? node.input(0) : node.output();
  if (integers == nullptr || !integers->type) return false;
  if (is_any_of(*integers->type, {u8, u16, i16, i32, u4, u2, i2})) return true;
  if (!is_any_of(*integers->type, {i8, i4})) return false;
  if (const onnx::Value* zero = node.input(2)) {
    const auto zeros = onnx::constant_ints(zero);
    if (!zeros || std::any_of(zeros->begin(), zeros->end(), [](std::int64_t n) { return n != 0; })) return true;
  }
  if (!is_dequantize) return false;
  if (integers->constant()) return rank_of(integers) == 0;
  const onnx::Node* movement = integers->graph == node.graph ? integers->producer : nullptr;
  if (movement == nullptr) return false;
  const std::vector<std::size_t> moved = moved_inputs(*movement);
  return std::any_of(moved.begin(), moved.end(),
                     [&](std::size_t i) { return movement->input(i)->constant().has_value(); });
}

bool is_quantized_operator(const onnx::Node& node) {
  if (node.domain.empty()) {
    return has_trait(node, onnx::trait::scales_integers | onnx::trait::quantizes) || node.is("MatMulInteger") ||
           node.is("ConvInteger");
  }
  constexpr std::array operators = {"QuantizeLinear",     "DequantizeLinear",      "QGemm",
                                    "QAttention",         "DynamicQuantizeMatMul", "MatMulIntegerToFloat",
                                    "DynamicQuantizeLSTM"};
  return onnx::is_of_onnxruntime(node) &&
         (node.op_type.starts_with("QLinear") ||
          std::find(operators.begin(), operators.end(), node.op_type) != operators.end());
}

bool is_bilinear(const onnx::Node& grid_sample) {
  const std::string mode = grid_sample.string_or("mode", "linear");
  return mode == "linear" || mode == "bilinear";
}

}  // namespace graft::passes
