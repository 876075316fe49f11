// Shape rules of the operators of ONNX Runtime (domain com.microsoft) that its optimizer writes.
#include <optional>
#include <string>
#include <vector>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx {
namespace shape_rules {
namespace {

void like_first(NodeTypes& t) { t.copy(0); }

/// Sets the output's shape to the shape of the first input, and its type to the type of the scale, input 1.
void simplified_normalization(NodeTypes& t) {
  t.set_type(0, t.type(1));
  if (t.shape(0) != nullptr) t.set_shape(0, *t.shape(0));
}

/// Infers the outputs of SkipLayerNormalization and similar operators, which normalize a sum. The last output, if
/// present, is the sum, whose type and shape are those of the first input.
void with_sum(NodeTypes& t) {
  t.copy(0);
  const std::size_t sum = t.node().op_type == "SkipGroupNorm" ? 1 : 3;
  if (t.node().output(sum) != nullptr) t.copy(0, sum);
}

void halved(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) == nullptr || t.shape(0)->empty()) return;
  Shape shape = *t.shape(0);
  shape.back() = floor_div(shape.back(), 2);
  t.set_shape(0, std::move(shape));
}

void fused_matmul(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.node().int_or("transBatchA", 0) != 0 || t.node().int_or("transBatchB", 0) != 0) return;
  if (t.shape(0) == nullptr || t.shape(1) == nullptr) return;
  Shape a = *t.shape(0);
  Shape b = *t.shape(1);
  if (t.node().int_or("transA", 0) != 0 && a.size() > 1) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (t.node().int_or("transB", 0) != 0 && b.size() > 1) std::swap(b[b.size() - 1], b[b.size() - 2]);
  t.set_shape(0, matmul_shape(t, std::move(a), std::move(b)));
}

void matmul_n_bits(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) == nullptr || t.shape(0)->empty()) return;
  Shape shape = *t.shape(0);
  shape.back() = t.node().int_or("N", 0);
  t.set_shape(0, std::move(shape));
}

void embedding(NodeTypes& t) {
  t.set_type(0, t.type(2));
  const bool gives_sum = t.node().output(2) != nullptr;
  if (t.node().output(1) != nullptr) t.set_type(1, ElementType::i32);
  if (gives_sum) t.set_type(2, t.type(2));
  const Shape* ids = t.shape(0);
  const Shape* words = t.shape(2);
  if (ids == nullptr || words == nullptr || ids->size() != 2 || words->size() != 2) return;
  const Shape shape{(*ids)[0], (*ids)[1], (*words)[1]};
  t.set_shape(0, shape);
  if (t.node().output(1) != nullptr) t.set_shape(1, {(*ids)[0]});
  if (gives_sum) t.set_shape(2, shape);
}

/// Returns the size of the last axis of the values of an Attention or a MultiHeadAttention; nothing if it is unknown.
std::optional<Dim> width_of_values(const NodeTypes& t) {
  if (t.node().op_type == "MultiHeadAttention") {
    const Shape* value = t.shape(2);
    return value != nullptr && value->size() == 3 ? std::optional(value->back()) : std::nullopt;
  }
  if (const auto sizes = t.node().ints("qkv_hidden_sizes"); sizes && sizes->size() == 3) return Dim(sizes->back());
  const Shape* weights = t.shape(1);
  return weights != nullptr && weights->size() == 2 ? std::optional(floor_div(weights->back(), 3)) : std::nullopt;
}

void attention(NodeTypes& t) {
  for (std::size_t i = 0; i < t.node().outputs.size(); ++i) {
    if (t.node().output(i) != nullptr) t.set_type(i, t.type(0));
  }
  const Shape* x = t.shape(0);
  const auto width = width_of_values(t);
  if (x != nullptr && x->size() == 3 && width) t.set_shape(0, {(*x)[0], (*x)[1], *width});
}

void pair(NodeTypes& t) {
  t.set_type(0, t.type(0));
  if (t.shape(0) != nullptr && t.shape(3) != nullptr && *t.shape(0) == *t.shape(3)) t.set_shape(0, *t.shape(0));
}

void group_query_attention(NodeTypes& t) {
  if (t.has_input(1)) t.copy(0);
}

Table make_table() {
  Table table;
  add(table, like_first, {"BiasAdd", "BiasGelu", "FastGelu", "Gelu", "GroupNorm", "QuickGelu", "RotaryEmbedding"});
  add(table, simplified_normalization, {"SimplifiedLayerNormalization"});
  add(table, with_sum, {"SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"});
  add(table, like_first, {"QLinearLeakyRelu", "QLinearSigmoid"});
  add(table, pair, {"QLinearAdd", "QLinearMul"});
  add(table, [](NodeTypes& t) { t.set_type(0, t.type(1)); }, {"QLinearConcat"});
  add(table, [](NodeTypes& t) { t.set_type(0, t.type(0)); }, {"DynamicQuantizeMatMul", "QLinearGlobalAveragePool"});
  add(table, [](NodeTypes& t) { t.set_type(0, t.type(2)); }, {"MatMulIntegerToFloat"});
  add(table, halved, {"BiasSplitGelu"});
  add(table, fused_matmul, {"FusedMatMul", "TransposeMatMul"});
  add(table, matmul_n_bits, {"MatMulNBits"});
  add(table, embedding, {"EmbedLayerNormalization"});
  add(table, attention, {"Attention", "MultiHeadAttention"});
  add(table, group_query_attention, {"GroupQueryAttention"});
  add(table, gemm, {"FusedGemm"});
  add(table, convolution, {"FusedConv"});
  return table;
}

}  // namespace
}  // namespace shape_rules

bool apply_onnxruntime_shape_rule(NodeTypes& types) {
  static const shape_rules::Table table = shape_rules::make_table();
  const auto found = table.find(types.node().op_type);
  if (found == table.end()) return false;
  found->second(types);
  return true;
}

}  // namespace graft::onnx
