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

/// The nodes that replace one node, as text for parse_nodes: one "output = Operator(inputs)" per line, opset 17. The
/// inputs and outputs of the node have the names x0, x1 ... and y0, y1 ....
struct Replacement {
  std::string nodes;
  /// The constants that `nodes` reads, by name.
  std::map<std::string, onnx::TensorData> constants;
  /// A description for reports: "3 TopK of at most 3840, each without the elements that earlier ones selected".
  std::string summary;
  /// The tensors of the graph, other than inputs of the node, that `nodes` reads, by the name used in `nodes`.
  std::map<std::string, const onnx::Value*> reads = {};
  std::vector<onnx::Node*> together_with = {};  ///< Nodes before this node that are replaced together with it.
  std::string by_definition = {};               ///< See Proposal.
  bool is_proven_by_onnxruntime = false;        ///< See Proposal.
  bool needs_small_values = false;              ///< See Proposal.
  /// The names of attributes of the node, graphs that `nodes` calls like operators with one input and one output:
  /// "modified = score_mod(scores)". Such a line is replaced by the nodes of the graph.
  std::vector<std::string> called_graphs = {};
  std::string reason = {};  ///< If not empty, replaces the reason in the table of lowerings.
  /// Edits the graph around the node if `nodes` cannot describe the replacement, for example for a node with a body. If
  /// set, `by_definition` must be set too, and of the other members above only `summary` and `reason` are used.
  std::function<void(onnx::Node&)> edit = {};
  /// The number of nodes that the replacement adds by copying a body or by handling each tensor of a sequence; counted
  /// against ConvertOptions::unroll.
  std::int64_t copied_nodes = 0;
  bool changes_result = false;  ///< See Proposal.
  bool keeps_node = false;      ///< Whether `edit` changes the node instead of replacing it.
  /// Further nodes that TensorRT refuses now and builds after the edit. The report lists them with the node.
  std::vector<const onnx::Node*> fixes = {};

  /// A function that adds nodes with bodies, which text cannot describe, to the graph with the nodes before them.
  using AddNodes = std::function<void(onnx::Graph&)>;
  /// The nodes that come before `nodes`: text, and nodes that are added after it.
  std::vector<std::pair<std::string, AddNodes>> first_nodes = {};

  void line(const std::string& text) { nodes += text + "\n"; }
  /// Adds nodes after the lines so far. `add` finds their results by name; the lines that follow find its results.
  void add(AddNodes add) { first_nodes.emplace_back(std::exchange(nodes, ""), std::move(add)); }
  /// Returns the name of an f32 tensor with the values of `name`, whose type is `from`: `name` itself if `from` is f32,
  /// otherwise the result of a Cast that is added to `nodes`.
  std::string in_f32(const std::string& name, onnx::ElementType from);
  /// Adds the node that computes `output`, of type `to`. `computation` is an operator call such as "Add(a, b)" with an
  /// f32 result, which is cast if `to` is another type.
  void give(const std::string& output, onnx::ElementType to, const std::string& computation);
  /// Adds a constant to `constants` under `name`, replacing an existing one of this name, and returns the name.
  std::string constant(std::string name, onnx::TensorData tensor);
  /// Adds a 1-D i64 constant, and returns its name.
  std::string ints(std::string name, const std::vector<std::int64_t>& values);
  /// Adds a scalar i64 constant, and returns its name.
  std::string integer(std::string name, std::int64_t value);
  /// Adds a scalar constant (rank 0), and returns its name.
  std::string number(std::string name, double value, onnx::ElementType type = onnx::ElementType::f32);
};

/// A cache of the lengths and the split ranges of the sequences in the model, so that a chain of SequenceInsert nodes
/// is followed once and not for each node that reads a sequence.
struct SequenceFacts {
  /// The number of tensors of a sequence, or in `why_not` why it is not known.
  struct Length {
    std::int64_t count = 0;
    std::string why_not = {};
  };
  /// The range [from, to) along the split axis of one tensor that SplitToSequence returns.
  struct Part {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  std::unordered_map<const onnx::Value*, Length> lengths;
  std::unordered_map<const onnx::Node*, std::optional<std::vector<Part>>>
      parts;                                       ///< The ranges of each SplitToSequence.
  std::unordered_set<const onnx::Node*> replaced;  ///< Nodes that another replacement removes.
};

/// The ProvenShapes of a model, which are inferred when a shape is first requested.
class ShapesOnDemand {
 public:
  /// `names` caches the node names of the graph, which lowerings that copy bodies need. It is filled by the first call
  /// of names_in(); several objects for the same graph can share it. If null, the object has its own cache.
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

/// The node that a lowering examines, with functions that read its inputs and attributes, and the reason why it cannot
/// be lowered.
class Site {
 public:
  Site(const onnx::Node& node, ShapesOnDemand& shapes) : node_(node), shapes_(shapes) {}

  [[nodiscard]] const onnx::Node& node() const { return node_; }
  [[nodiscard]] bool has_input(std::size_t i) const { return node_.input(i) != nullptr; }
  [[nodiscard]] bool is_used(std::size_t output) const { return node_.is_output_used(output); }
  [[nodiscard]] std::int64_t opset() const { return node_.graph->opset(); }
  [[nodiscard]] onnx::ElementType type(std::size_t input) const;  ///< Returns the type of an input, or `undefined`.
  [[nodiscard]] bool is_real(std::size_t input) const;            ///< Returns whether an input is f32, f16 or bf16.
  /// Returns the shape of an input as inferred from the inputs of the network, or null if not even its rank can be
  /// inferred.
  [[nodiscard]] const Shape* shape(std::size_t input) const;
  /// Returns the node that computes an input, or null if the input is absent, a constant, a graph input, or computed in
  /// another graph.
  [[nodiscard]] onnx::Node* producer(std::size_t input) const;
  [[nodiscard]] ShapesOnDemand& shapes() { return shapes_; }
  /// Returns the size of an axis of an input, or nothing if the size is not known. A negative `axis` counts from the
  /// end.
  [[nodiscard]] std::optional<std::int64_t> size(std::size_t input, std::int64_t axis) const;
  /// Returns the sizes of the input's axes from axis `first` on, or nothing if one of these sizes or the rank is not
  /// known.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> sizes(std::size_t input, std::size_t first = 0) const;
  [[nodiscard]] std::optional<onnx::TensorData> constant(std::size_t input) const;
  /// Returns the elements of a constant integer input, or nothing if the input is absent, not constant or not an
  /// integer type.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::size_t input) const;
  /// Returns the elements of a constant input as double, or nothing if the input is absent, not constant or not
  /// numeric.
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::size_t input) const;
  /// Returns a list attribute, or a list with `count` elements that are all `otherwise` if the attribute is absent.
  /// Throws Error if the list of the node does not have `count` elements.
  [[nodiscard]] std::vector<std::int64_t> ints_or(std::string_view attribute, std::size_t count,
                                                  std::int64_t otherwise) const;

  /// Stores the reason why the node cannot be lowered, as a clause for messages ("its mask may be ..."). Returns
  /// std::nullopt, so that a lowering can write `return site.no(...)`.
  std::nullopt_t no(std::string why);
  /// Calls no() with the reason `what`, which names a dynamic size, and appends the setting with which the user gives
  /// the network inputs fixed sizes.
  std::nullopt_t no_size(std::string_view what);
  /// Calls no() with the reason that the type of this input is not f32, f16 or bf16.
  std::nullopt_t no_type(std::size_t input);
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  const onnx::Node& node_;
  ShapesOnDemand& shapes_;
  std::string why_not_;
};

/// The value of Lowering::domain for a plugin of another library, which exporters write in various domains.
inline constexpr std::string_view any_domain = "*";

struct Lowering {
  std::string_view op_type;
  std::string_view refused;  ///< The form that TensorRT refuses: "K above 3840", which follows "TopK with".
  /// Returns whether TensorRT refuses this node, because it has the attributes or types that `refused` describes. Null
  /// if TensorRT refuses every node of the operator, or if that depends on shapes or other nodes, which `lower`
  /// examines.
  bool (*is_refused)(const onnx::Node& node);
  std::string_view form;   ///< The replacement, for the documentation.
  std::string_view needs;  ///< The conditions, for the documentation.
  /// Called for nodes for which `is_refused` is null or returns true. Returns the replacement. Returns nothing if
  /// TensorRT accepts the node. Also returns nothing, after storing the reason with site.no(), if the node cannot be
  /// lowered.
  std::optional<Replacement> (*lower)(Site& site);
  /// The text with which the advice on a refused node begins, if the user needs to know more than that `graft convert`
  /// replaces the node; otherwise empty.
  std::string_view advice = {};
  /// The domain of the operator: empty for ONNX's own operators, any_domain for a plugin of another library.
  std::string_view domain = {};

  /// Returns whether a node has the operator type and the domain of this lowering. any_domain matches every domain
  /// except com.microsoft, because exporters choose the domain of a plugin freely and TensorRT ignores it.
  [[nodiscard]] bool is_for(const onnx::Node& node) const {
    if (node.op_type != op_type) return false;
    return domain == any_domain ? node.domain != onnx::onnxruntime_domain : node.domain == domain;
  }
};

/// Returns all lowerings, the most common operators first. An operator may have several lowerings; the first one that
/// returns a replacement is used.
[[nodiscard]] std::span<const Lowering> lowerings();
/// Returns the first lowering for the operator of a node, even if TensorRT accepts this node, or null if the operator
/// has no lowering.
[[nodiscard]] const Lowering* find_lowering(const onnx::Node& node);
/// Returns whether a lowering may replace a node: it is for the node's operator, and its Lowering::is_refused is null
/// or returns true for the node.
[[nodiscard]] bool has_lowered_form(const onnx::Node& node);

[[nodiscard]] std::int64_t product(const std::vector<std::int64_t>& sizes);
[[nodiscard]] onnx::TensorData f32_tensor(std::vector<std::int64_t> dims, const std::vector<double>& values);
[[nodiscard]] onnx::TensorData ints_tensor(std::vector<std::int64_t> dims, const std::vector<std::int64_t>& values);

/// Returns a number as text for a float attribute, always with a decimal point or exponent, because a number without
/// one is read as an integer.
[[nodiscard]] std::string real_text(double number);

/// Returns the attributes kernel_shape, strides, dilations, pads, group and auto_pad of a convolution as text for a new
/// node.
[[nodiscard]] std::string convolution_text(const onnx::Node& node);

/// An axis of a tensor. `tensor` is the name of the tensor in Replacement::nodes.
struct AxisOf {
  std::string tensor;
  int axis = 0;
};
/// Writes nodes that compute the table `name`, [queries, keys], for causal attention: `hidden` where the key comes
/// after the query, 0 elsewhere. The number of keys is that of `keys_now`, plus that of `past` if its tensor is not
/// empty; past keys come before all queries.
void write_causal_table(Replacement& result, const std::string& name, const AxisOf& queries, const AxisOf& keys_now,
                        const AxisOf& past, onnx::ElementType type, double hidden);

/// The parameters of a group normalization. `epsilon` is text for an attribute; `scale` and `shift` are names of f32
/// tensors with one element for each channel.
struct GroupNormalization {
  std::int64_t groups = 1;
  std::string epsilon;
  std::string scale;
  std::string shift;
};
/// Writes nodes that compute `name`, the group normalization of `x`, an f32 tensor of rank `rank` with the channels on
/// axis 1, as an InstanceNormalization of the groups followed by scale and shift of the channels.
void write_group_normalization(Replacement& result, const std::string& name, const std::string& x, std::size_t rank,
                               const GroupNormalization& norm);

/// The maximum number of elements of one constant that a lowering computes.
inline constexpr std::int64_t most_constants = std::int64_t{1} << 24;

/// Thrown before a constant of more than most_constants elements is computed. The node is then not lowered.
class TableTooLarge : public std::runtime_error {
 public:
  TableTooLarge()
      : std::runtime_error("a table of constants that its layers need would have more than " +
                           std::to_string(most_constants) + " elements") {}
};

/// Returns whether the node may be replaced by `copied` nodes: they must not be more than `limit`, and all nodes that
/// were copied in the model so far, including these, not more than 64 times `limit`. Otherwise stores a reason with
/// site.no(); if this node alone exceeds `limit`, the reason begins with `what`, such as "its 3 iterations of 2 nodes
/// are".
[[nodiscard]] bool is_within_limit(Site& site, std::int64_t copied, std::int64_t limit, const std::string& what);

/// Throws TableTooLarge if a tensor of these sizes has more than most_constants elements.
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
[[nodiscard]] std::optional<Replacement> lower_flex_attention(Site& site);
[[nodiscard]] std::optional<Replacement> lower_linear_attention(Site& site);
[[nodiscard]] std::optional<Replacement> lower_layer_normalization(Site& site);
[[nodiscard]] std::optional<Replacement> lower_recurrent_layout(Site& site);
[[nodiscard]] std::optional<Replacement> lower_coupled_gates(Site& site);
[[nodiscard]] std::optional<Replacement> lower_resize(Site& site);
[[nodiscard]] std::optional<Replacement> lower_cubic_resize(Site& site);
[[nodiscard]] std::optional<Replacement> lower_deform_conv(Site& site);
[[nodiscard]] std::optional<Replacement> lower_scatter_nd(Site& site);
[[nodiscard]] std::optional<Replacement> lower_scatter_elements(Site& site);
[[nodiscard]] std::optional<Replacement> lower_tensor_scatter(Site& site);
[[nodiscard]] std::optional<Replacement> lower_classification_loss(Site& site);
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
[[nodiscard]] std::optional<Replacement> lower_optional_has_element(Site& site);
[[nodiscard]] std::optional<Replacement> lower_optional_get_element(Site& site);
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
[[nodiscard]] std::optional<Replacement> lower_unique(Site& site);
[[nodiscard]] std::optional<Replacement> lower_non_zero(Site& site);
[[nodiscard]] std::optional<Replacement> lower_compress(Site& site);
[[nodiscard]] std::optional<Replacement> lower_mel_weight_matrix(Site& site);
[[nodiscard]] std::optional<Replacement> lower_einsum(Site& site);
[[nodiscard]] std::optional<Replacement> lower_box_limit(Site& site);
[[nodiscard]] std::optional<Replacement> sample_by_gather(Site& site);
[[nodiscard]] std::optional<Replacement> sample_volumes_by_gather(Site& site);

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
[[nodiscard]] std::optional<Replacement> lower_detection_output(Site& site);

}  // namespace graft::passes
