// A lowering writes one operator of ONNX or ONNX Runtime, in a form that TensorRT refuses, or one plugin of another
// library with layers that TensorRT has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnx/model.hpp"
#include "onnx/standard_operators.hpp"
#include "passes/cleanup/inline_branch.hpp"
#include "passes/cleanup/proven_shapes.hpp"

namespace graft::passes {

/// The nodes that replace one node, as parse_nodes reads them: inputs x0, x1 ..., outputs y0, y1 ..., in operator set
/// 17.
struct Replacement {
  std::string nodes;
  /// Further names in `nodes`, and the constants that they stand for.
  std::map<std::string, onnx::TensorData> constants;
  /// A description: "3 TopK of at most 3840, each without the elements that earlier ones selected".
  std::string summary;
  /// Further names in `nodes`, and the tensors of the graph that they stand for.
  std::map<std::string, const onnx::Value*> reads = {};
  std::vector<onnx::Node*> together_with = {};  ///< Nodes before this one that are replaced too.
  std::string by_definition = {};               ///< See Proposal.
  bool is_proven_by_onnxruntime = false;        ///< See Proposal.
  std::string reason = {};                      ///< Replaces the reason of the table of lowerings, if it is not empty.
  /// Edits the graph around the node, where `nodes` cannot describe the replacement, for example of a node with a body.
  /// Needs `by_definition`, and ignores all other members above except `summary` and `reason`.
  std::function<void(onnx::Node&)> edit = {};
  /// The number of nodes that copies of a body, or the tensors of a sequence, need.
  std::int64_t copied_nodes = 0;
  bool changes_result = false;  ///< See Proposal.
  bool keeps_node = false;      ///< Whether `edit` only completes the node, which stays.
  /// The nodes around this one that TensorRT builds after the edit, and not before it.
  std::vector<const onnx::Node*> fixes = {};

  void line(const std::string& text) { nodes += text + "\n"; }
  /// Returns the name of input `name`, of type `from`, in f32: `name` itself, or the name of a Cast that is added.
  std::string in_f32(const std::string& name, onnx::ElementType from);
  /// Writes the line that computes `output`, of type `to`, with `computation`, whose result is f32.
  void give(const std::string& output, onnx::ElementType to, const std::string& computation);
  /// Adds a constant, and returns its name.
  std::string constant(std::string name, onnx::TensorData tensor);
  std::string ints(std::string name, const std::vector<std::int64_t>& values);  ///< Adds an i64 constant of one axis.
  std::string integer(std::string name, std::int64_t value);                    ///< Adds an i64 constant without axes.
  /// Adds a constant without axes.
  std::string number(std::string name, double value, onnx::ElementType type = onnx::ElementType::f32);
};

/// Facts about sequences that several nodes read, so that a chain of insertions is followed once.
struct SequenceFacts {
  /// The number of tensors of a sequence, or why it is not known.
  struct Length {
    std::int64_t count = 0;
    std::string why_not = {};
  };
  /// The begin and the end of one part of SplitToSequence.
  struct Part {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  std::unordered_map<const onnx::Value*, Length> lengths;
  std::unordered_map<const onnx::Node*, std::optional<std::vector<Part>>>
      parts;                                       ///< The parts of each SplitToSequence.
  std::unordered_set<const onnx::Node*> replaced;  ///< The nodes before a node that a replacement includes.
};

/// Shapes that follow from the inputs of the network, inferred at the first use.
class ShapesOnDemand {
 public:
  /// `names` are set at the first use to those of the graph of the nodes, where copies of bodies need them.
  explicit ShapesOnDemand(Rewriter& rewriter, std::optional<NodeNames>* names = nullptr)
      : rewriter_(rewriter), names_(names == nullptr ? &own_names_ : names) {}
  [[nodiscard]] const ConvertOptions& options() const { return rewriter_.options(); }
  [[nodiscard]] std::int64_t copied_nodes() const { return rewriter_.copied_nodes(); }
  [[nodiscard]] SequenceFacts& sequences() { return sequences_; }
  [[nodiscard]] NodeNames& names_in(const onnx::Graph& graph) { return *names_ ? **names_ : names_->emplace(graph); }
  [[nodiscard]] const Shape* of(const onnx::Value& value) {
    if (!shapes_) shapes_.emplace(rewriter_);
    return shapes_->of(value);
  }

 private:
  Rewriter& rewriter_;
  std::optional<ProvenShapes> shapes_;
  SequenceFacts sequences_;
  std::optional<NodeNames> own_names_;
  std::optional<NodeNames>* names_;
};

/// A node that a lowering reads.
class Site {
 public:
  Site(const onnx::Node& node, ShapesOnDemand& shapes) : node_(node), shapes_(shapes) {}

  [[nodiscard]] const onnx::Node& node() const { return node_; }
  [[nodiscard]] bool has_input(std::size_t i) const { return node_.input(i) != nullptr; }
  [[nodiscard]] bool is_used(std::size_t output) const { return node_.is_output_used(output); }
  [[nodiscard]] std::int64_t opset() const { return node_.graph->opset(); }
  [[nodiscard]] onnx::ElementType type(std::size_t input) const;  ///< `undefined` where it is not known.
  [[nodiscard]] bool is_real(std::size_t input) const;            ///< f32, f16 or bf16.
  /// Returns the shape of an input as it follows from the inputs of the network, or null if not even the rank follows.
  [[nodiscard]] const Shape* shape(std::size_t input) const;
  /// Returns the node of the same graph that computes an input, or null.
  [[nodiscard]] onnx::Node* producer(std::size_t input) const;
  [[nodiscard]] ShapesOnDemand& shapes() { return shapes_; }
  /// Returns the size of one axis of an input, or nothing if it is dynamic.
  [[nodiscard]] std::optional<std::int64_t> size(std::size_t input, std::int64_t axis) const;
  /// Returns all sizes of the input from axis `first` on, or nothing if one is dynamic.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> sizes(std::size_t input, std::size_t first = 0) const;
  [[nodiscard]] std::optional<onnx::TensorData> constant(std::size_t input) const;
  /// Returns the integers of a constant input, or nothing if the input is computed or holds no integers.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::size_t input) const;
  /// Returns the elements of a constant input, or nothing if the input is computed.
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::size_t input) const;
  /// Returns an attribute, or `count` copies of `otherwise` if the attribute is absent. Throws Error for another count.
  [[nodiscard]] std::vector<std::int64_t> ints_or(std::string_view attribute, std::size_t count,
                                                  std::int64_t otherwise) const;

  /// Stores why the node cannot be lowered although TensorRT refuses it. Returns an empty result for the lowering to
  /// return.
  std::nullopt_t no(std::string why);
  /// Stores that a dynamic size is the reason, and the setting that gives the inputs of a network fixed sizes.
  std::nullopt_t no_size(std::string_view what);
  /// Stores that the type of an input, which is not f32, f16 or bf16, is the reason.
  std::nullopt_t no_type(std::size_t input);
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  const onnx::Node& node_;
  ShapesOnDemand& shapes_;
  std::string why_not_;
};

/// The domain of lowerings that replace a plugin of another library.
inline constexpr std::string_view any_domain = "*";

struct Lowering {
  std::string_view op_type;
  std::string_view refused;  ///< The form that TensorRT refuses: "K above 3840", which follows "TopK with".
  /// Returns whether a node has that form. Null where every node has it, or where shapes or other nodes decide, which
  /// `lower` reads.
  bool (*is_refused)(const onnx::Node& node);
  std::string_view form;   ///< The replacement, for the documentation.
  std::string_view needs;  ///< The conditions, for the documentation.
  /// Is called for nodes that have the form. Returns nothing if TensorRT has the node as it is, and, after site.no(),
  /// if the node cannot be lowered.
  std::optional<Replacement> (*lower)(Site& site);
  /// The first clause of the advice on a refused node, for operators on which there is more to advise than to run
  /// `graft convert`. Empty for other operators.
  std::string_view advice = {};
  /// The domain of the operator; empty for ONNX's own, and any_domain for a plugin.
  std::string_view domain = {};

  /// Returns whether a node is of the operator. A plugin's name stands for the plugin in every domain but
  /// com.microsoft, because exporters choose the domain freely and TensorRT ignores it.
  [[nodiscard]] bool is_for(const onnx::Node& node) const {
    if (node.op_type != op_type) return false;
    return domain == any_domain ? node.domain != onnx::onnxruntime_domain : node.domain == domain;
  }
};

/// Returns all lowerings, ordered by how common the operators are. Of several for one operator, the first that returns
/// a replacement is used.
[[nodiscard]] std::span<const Lowering> lowerings();
/// Returns the first lowering of a node's operator, or null.
[[nodiscard]] const Lowering* find_lowering(const onnx::Node& node);
/// Returns whether a lowering of a node's operator is called for the form of the node.
[[nodiscard]] bool has_lowered_form(const onnx::Node& node);

[[nodiscard]] std::int64_t product(const std::vector<std::int64_t>& sizes);
[[nodiscard]] onnx::TensorData f32_tensor(std::vector<std::int64_t> dims, const std::vector<double>& values);
[[nodiscard]] onnx::TensorData ints_tensor(std::vector<std::int64_t> dims, const std::vector<std::int64_t>& values);

/// Returns a number as it is written in an attribute, where a number without a point would be an integer.
[[nodiscard]] std::string real_text(double number);

/// Returns the attributes of a convolution as text, for the node that replaces it.
[[nodiscard]] std::string convolution_text(const onnx::Node& node);

/// An axis of a tensor, by the name that the tensor has in a Replacement.
struct AxisOf {
  std::string tensor;
  int axis = 0;
};
/// Writes lines that compute `name`, a table with a row for each query and a column for each key: `hidden` where the
/// key comes after the query, and 0 elsewhere. The keys of `past`, if its name is not empty, come before all queries.
void write_causal_table(Replacement& result, const std::string& name, const AxisOf& queries, const AxisOf& keys_now,
                        const AxisOf& past, onnx::ElementType type, double hidden);

/// The parameters of a group normalization. `scale` and `shift` are names of f32 tensors with one element
/// for each channel.
struct GroupNormalization {
  std::int64_t groups = 1;
  std::string epsilon;
  std::string scale;
  std::string shift;
};
/// Writes lines that compute `name`, the group normalization of `x`, an f32 tensor of this rank whose channels are on
/// axis 1: InstanceNormalization of the groups, and scale and shift of the channels.
void write_group_normalization(Replacement& result, const std::string& name, const std::string& x, std::size_t rank,
                               const GroupNormalization& norm);

/// The maximum number of elements in one table.
inline constexpr std::int64_t most_constants = std::int64_t{1} << 24;

/// Thrown before a table of more than most_constants elements is computed. The node then stays as it is.
class TableTooLarge : public std::runtime_error {
 public:
  TableTooLarge()
      : std::runtime_error("a table of constants that its layers need would have more than " +
                           std::to_string(most_constants) + " elements") {}
};

/// Returns whether a node may become `copied` nodes, and these and all nodes copied before are within the limits.
/// Otherwise stores a reason that begins with `what`: "its 3 iterations of 2 nodes are".
[[nodiscard]] bool is_within_limit(Site& site, std::int64_t copied, std::int64_t limit, const std::string& what);

/// Throws TableTooLarge if a table of these sizes has more than most_constants elements.
void check_table(const std::vector<std::int64_t>& sizes);

// One function per lowering, each in the file of its group.
[[nodiscard]] std::optional<Replacement> lower_top_k(Site& site);
[[nodiscard]] std::optional<Replacement> lower_dft(Site& site);
[[nodiscard]] std::optional<Replacement> lower_col2im(Site& site);
[[nodiscard]] std::optional<Replacement> lower_max_pool(Site& site);
[[nodiscard]] std::optional<Replacement> lower_dilated_pool(Site& site);
[[nodiscard]] std::optional<Replacement> lower_lp_pool(Site& site);
[[nodiscard]] std::optional<Replacement> lower_max_unpool(Site& site);
[[nodiscard]] std::optional<Replacement> lower_attention(Site& site);
[[nodiscard]] std::optional<Replacement> lower_layer_normalization(Site& site);
[[nodiscard]] std::optional<Replacement> lower_recurrent_layout(Site& site);
[[nodiscard]] std::optional<Replacement> lower_coupled_gates(Site& site);
[[nodiscard]] std::optional<Replacement> lower_resize(Site& site);
[[nodiscard]] std::optional<Replacement> lower_cubic_resize(Site& site);
[[nodiscard]] std::optional<Replacement> lower_deform_conv(Site& site);
[[nodiscard]] std::optional<Replacement> lower_scatter_nd(Site& site);
[[nodiscard]] std::optional<Replacement> lower_scatter_elements(Site& site);
[[nodiscard]] std::optional<Replacement> lower_dynamic_quantize(Site& site);
[[nodiscard]] std::optional<Replacement> lower_matmul_integer(Site& site);
[[nodiscard]] std::optional<Replacement> lower_conv_integer(Site& site);
[[nodiscard]] std::optional<Replacement> lower_qlinear_conv(Site& site);
[[nodiscard]] std::optional<Replacement> lower_qlinear_matmul(Site& site);
[[nodiscard]] std::optional<Replacement> lower_cast_of_bytes(Site& site);
[[nodiscard]] std::optional<Replacement> lower_cast_of_moved_bytes(Site& site);
[[nodiscard]] std::optional<Replacement> lower_quantize_linear(Site& site);
[[nodiscard]] std::optional<Replacement> lower_dequantize_linear(Site& site);
[[nodiscard]] std::optional<Replacement> lower_sequence_at(Site& site);
[[nodiscard]] std::optional<Replacement> lower_concat_from_sequence(Site& site);
[[nodiscard]] std::optional<Replacement> lower_sequence_length(Site& site);
[[nodiscard]] std::optional<Replacement> lower_loop(Site& site);
[[nodiscard]] std::optional<Replacement> lower_scan(Site& site);
[[nodiscard]] std::optional<Replacement> lower_if(Site& site);
[[nodiscard]] std::optional<Replacement> lower_computed_size(Site& site);
[[nodiscard]] std::optional<Replacement> lower_affine_grid(Site& site);
[[nodiscard]] std::optional<Replacement> lower_center_crop_pad(Site& site);
[[nodiscard]] std::optional<Replacement> lower_vector_product(Site& site);
[[nodiscard]] std::optional<Replacement> lower_swiglu(Site& site);
[[nodiscard]] std::optional<Replacement> lower_celu(Site& site);
[[nodiscard]] std::optional<Replacement> lower_mod(Site& site);
[[nodiscard]] std::optional<Replacement> lower_boolean_reduction(Site& site);
[[nodiscard]] std::optional<Replacement> lower_boolean_permutation(Site& site);
[[nodiscard]] std::optional<Replacement> lower_cum_prod(Site& site);
[[nodiscard]] std::optional<Replacement> lower_det(Site& site);
[[nodiscard]] std::optional<Replacement> lower_bit_shift(Site& site);
[[nodiscard]] std::optional<Replacement> lower_bitwise_not(Site& site);
[[nodiscard]] std::optional<Replacement> lower_bitwise(Site& site);
[[nodiscard]] std::optional<Replacement> lower_non_zero(Site& site);
[[nodiscard]] std::optional<Replacement> lower_compress(Site& site);
[[nodiscard]] std::optional<Replacement> lower_mel_weight_matrix(Site& site);
[[nodiscard]] std::optional<Replacement> lower_einsum(Site& site);
[[nodiscard]] std::optional<Replacement> lower_box_limit(Site& site);
[[nodiscard]] std::optional<Replacement> sample_by_gather(Site& site);

// Operators of ONNX Runtime.
[[nodiscard]] std::optional<Replacement> lower_gelu(Site& site);
[[nodiscard]] std::optional<Replacement> lower_bias_split_gelu(Site& site);
[[nodiscard]] std::optional<Replacement> lower_bias_add(Site& site);
[[nodiscard]] std::optional<Replacement> lower_fused_matmul(Site& site);
[[nodiscard]] std::optional<Replacement> lower_fused_gemm(Site& site);
[[nodiscard]] std::optional<Replacement> lower_fused_conv(Site& site);
[[nodiscard]] std::optional<Replacement> lower_matmul_n_bits(Site& site);
[[nodiscard]] std::optional<Replacement> lower_skip_layer_normalization(Site& site);
[[nodiscard]] std::optional<Replacement> lower_simplified_layer_normalization(Site& site);
[[nodiscard]] std::optional<Replacement> lower_embed_layer_normalization(Site& site);
[[nodiscard]] std::optional<Replacement> lower_group_norm(Site& site);
[[nodiscard]] std::optional<Replacement> lower_qlinear_pair(Site& site);
[[nodiscard]] std::optional<Replacement> lower_qlinear_one(Site& site);
[[nodiscard]] std::optional<Replacement> lower_qlinear_concat(Site& site);
[[nodiscard]] std::optional<Replacement> lower_qlinear_where(Site& site);
[[nodiscard]] std::optional<Replacement> lower_qgemm(Site& site);
[[nodiscard]] std::optional<Replacement> lower_matmul_integer_to_float(Site& site);
[[nodiscard]] std::optional<Replacement> lower_rotary_embedding(Site& site);
[[nodiscard]] std::optional<Replacement> lower_packed_attention(Site& site);
[[nodiscard]] std::optional<Replacement> lower_quantized_attention(Site& site);
[[nodiscard]] std::optional<Replacement> lower_multi_head_attention(Site& site);
[[nodiscard]] std::optional<Replacement> lower_group_query_attention(Site& site);

// Plugins of other libraries.
[[nodiscard]] std::optional<Replacement> lower_grid_sampler(Site& site);
[[nodiscard]] std::optional<Replacement> lower_running_extreme(Site& site);
[[nodiscard]] std::optional<Replacement> lower_mmcv_roi_align(Site& site);
[[nodiscard]] std::optional<Replacement> lower_mmcv_multi_level_roi_align(Site& site);
[[nodiscard]] std::optional<Replacement> lower_gather_topk(Site& site);
[[nodiscard]] std::optional<Replacement> lower_plugin_instance_norm(Site& site);
[[nodiscard]] std::optional<Replacement> lower_plugin_group_norm(Site& site);
[[nodiscard]] std::optional<Replacement> lower_coordinates(Site& site);
[[nodiscard]] std::optional<Replacement> lower_batch_tile(Site& site);
[[nodiscard]] std::optional<Replacement> lower_special_slice(Site& site);
[[nodiscard]] std::optional<Replacement> lower_plugin_clip(Site& site);
[[nodiscard]] std::optional<Replacement> lower_reorg(Site& site);
[[nodiscard]] std::optional<Replacement> lower_flatten_concat(Site& site);
[[nodiscard]] std::optional<Replacement> lower_plugin_crop_and_resize(Site& site);

}  // namespace graft::passes
