// FlexAttention: two products and Softmax, with the node's own graphs between them.
//
//   FlexAttention<score_mod, prob_mod>(q, k, v)   becomes   scores = MatMul(Mul(q, root), Transpose(Mul(k, root)))
//                                                           shares = Softmax(score_mod(scores))
//                                                           y = MatMul(prob_mod(shares), v)
//
// Here root is the square root of the scale. As ONNX defines it, scores and shares have the type softmax_precision,
// which is f32 by default. A graph that the node does not have returns its input.
#include <fmt/format.h>

#include <cmath>

#include "onnx/branches.hpp"
#include "passes/lowering/lowering.hpp"

namespace graft::passes {

std::optional<Replacement> lower_flex_attention(Site& site) {
  using enum onnx::ElementType;
  const onnx::Node& node = site.node();
  for (std::size_t i = 0; i < 3; ++i) {
    if (!site.is_real(i)) return site.no_type(i);
  }
  const auto size = site.size(0, -1);
  if (!size || *size < 1) return site.no_size("the size of its heads is dynamic");
  const auto q_heads = site.size(0, 1);
  const auto kv_heads = site.size(1, 1);
  if (!q_heads || !kv_heads || *kv_heads < 1) return site.no_size("the number of its heads is dynamic");
  if (*q_heads % *kv_heads != 0) {
    return site.no(fmt::format("its {} query heads are not a multiple of its {} key heads", *q_heads, *kv_heads));
  }
  const auto type = static_cast<onnx::ElementType>(node.int_or("softmax_precision", static_cast<std::int64_t>(f32)));
  if (type != f32 && type != f16 && type != bf16) {
    return site.no(fmt::format("its softmax_precision is {}; only f32, f16 and bf16 are supported", to_string(type)));
  }
  for (const char* name : {"score_mod", "prob_mod"}) {
    const onnx::Graph* graph = onnx::subgraph(node, name);
    if (node.attribute(name) == nullptr) continue;
    if (graph == nullptr || graph->inputs().size() != 1 || graph->outputs().size() != 1)
      return site.no(fmt::format("its {} is not a graph with one input and one output", name));
  }

  Replacement result;
  const auto cast = [&](const std::string& tensor, onnx::ElementType from) {
    if (from == type) return tensor;
    result.line(fmt::format("{0}_precise = Cast<to={1}>({0})", tensor, to_string(type)));
    return tensor + "_precise";
  };
  const auto modify = [&](const std::string& graph, const std::string& tensor) {
    if (node.attribute(graph) == nullptr) return tensor;
    result.line(fmt::format("{0}_modified = {1}({0})", tensor, graph));
    result.called_graphs.push_back(graph);
    return tensor + "_modified";
  };
  std::string key = "x1";
  std::string value = "x2";
  if (*q_heads != *kv_heads) {
    std::vector<std::int64_t> heads;
    for (std::int64_t head = 0; head < *q_heads; ++head) heads.push_back(head / (*q_heads / *kv_heads));
    const std::string which = result.ints("which_head", heads);
    result.line(fmt::format("k_of_all = Gather<axis=1>(x1, {})", which));
    result.line(fmt::format("v_of_all = Gather<axis=1>(x2, {})", which));
    key = "k_of_all";
    value = "v_of_all";
  }
  const double scale = node.float_or("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(*size))));
  const std::string root = result.number("root", std::sqrt(scale), site.type(0));
  result.line(fmt::format("q_scaled = Mul(x0, {})", root));
  result.line(fmt::format("k_scaled = Mul({}, {})", key, root));
  result.line("k_turned = Transpose<perm=[0, 1, 3, 2]>(k_scaled)");
  result.line("scores = MatMul(q_scaled, k_turned)");
  const std::string scores = modify("score_mod", cast("scores", site.type(0)));
  result.line(fmt::format("shares = Softmax<axis=-1>({})", scores));
  const std::string shares = modify("prob_mod", "shares");
  result.line(fmt::format("of_values = MatMul({}, {})", shares, cast(value, site.type(2))));
  result.line(type == site.type(2) ? "y0 = Identity(of_values)"
                                   : fmt::format("y0 = Cast<to={}>(of_values)", to_string(site.type(2))));
  result.summary = fmt::format("MatMul, Softmax and MatMul of {} heads{}", *q_heads,
                               result.called_graphs.empty() ? "" : ", with the nodes of its graphs between them");
  return result;
}

}  // namespace graft::passes
