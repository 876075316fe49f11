// Converts a node of a TensorFlow graph to ONNX nodes: reads the node's inputs and attributes, and records its results.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/node_builder.hpp"
#include "import/tensorflow/tensor.hpp"

namespace graft::tensorflow {

class NodeDef;

/// The end of a Slice that extends to the last element.
inline constexpr std::int64_t to_the_end = std::numeric_limits<std::int64_t>::max();

/// The elements of an output that the network reads.
enum class Use : std::uint8_t { nothing, last, everything };

class NodeConverter : public NodeBuilder {
 public:
  NodeConverter(const NodeDef& node, onnx::Graph& graph, onnx::ContentsMap& contents, ConstantBudget& budget,
                std::vector<onnx::Value*> inputs);

  [[nodiscard]] const std::string& op() const;

  // ---- Inputs
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  /// Returns the value of input `i`. Throws Error if the node has no such input.
  [[nodiscard]] onnx::Value* input(std::size_t i) const;
  [[nodiscard]] onnx::ElementType type(std::size_t i) const;
  [[nodiscard]] std::optional<std::size_t> rank(const onnx::Value* value) const;
  /// Returns the rank of the value. Throws Error if it is unknown; `why` states in the message what needs the rank.
  [[nodiscard]] std::size_t known_rank(const onnx::Value* value, std::string_view why) const;
  [[nodiscard]] std::optional<onnx::TensorData> constant(std::size_t i) const;
  /// Returns the elements of a small integer input, even if they are computed from known shapes; nothing if they are
  /// unknown.
  [[nodiscard]] std::optional<Ints> ints(std::size_t i) const { return ints_in(input(i)); }
  /// Returns the elements of a small integer input. Throws Error if they are unknown; `what` names them in the message.
  [[nodiscard]] Ints known_ints(std::size_t i, std::string_view what) const;
  [[nodiscard]] std::int64_t known_int(std::size_t i, std::string_view what) const;

  // ---- Attributes; `otherwise` is returned if the node lacks the attribute
  [[nodiscard]] std::int64_t int_or(const std::string& attribute, std::int64_t otherwise) const;
  [[nodiscard]] bool flag_or(const std::string& attribute, bool otherwise) const;
  [[nodiscard]] float float_or(const std::string& attribute, float otherwise) const;
  [[nodiscard]] std::string text_or(const std::string& attribute, std::string_view otherwise) const;
  /// Returns the strings of an attribute, or an empty list if the node lacks the attribute.
  [[nodiscard]] std::vector<std::string> strings(const std::string& attribute) const;
  /// Returns the numbers of an attribute, or an empty list if the node lacks the attribute.
  [[nodiscard]] std::vector<float> floats(const std::string& attribute) const;
  [[nodiscard]] Ints ints_or(const std::string& attribute, Ints otherwise) const;
  /// Returns the shape in an attribute, with -1 for a dynamic size; nothing if the attribute is absent or has an
  /// unknown rank.
  [[nodiscard]] std::optional<Ints> shape_or(const std::string& attribute) const;
  [[nodiscard]] onnx::ElementType type_or(const std::string& attribute, onnx::ElementType otherwise) const;

  onnx::Value* as_i64(std::size_t i) { return cast(input(i), onnx::ElementType::i64); }

  // ---- Results

  /// Returns which elements of an output the network reads; `last` stands for the last one along the first axis.
  /// Without set_uses() it is everything.
  [[nodiscard]] Use use(std::size_t output) const { return output < uses_.size() ? uses_[output] : Use::everything; }
  void set_uses(std::vector<Use> uses) { uses_ = std::move(uses); }
  /// Sets output `index` of the TensorFlow node. The value gets the node's name unless it already has the name of
  /// another tensor.
  void give(std::size_t index, onnx::Value* value);
  void give(onnx::Value* value) { give(0, value); }
  [[nodiscard]] const std::vector<onnx::Value*>& results() const { return results_; }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  const NodeDef& node_;
  std::vector<onnx::Value*> inputs_;
  std::vector<onnx::Value*> results_;
  std::vector<Use> uses_;
};

/// A TensorFlow operator and its converter.
struct OperatorEntry {
  std::string_view name;
  void (*convert)(NodeConverter& node);
};

using OperatorEntries = std::span<const OperatorEntry>;

/// Returns an entry for each operator, ordered by name. Each element of `converters` is a converter and the names of
/// its operators, separated by single spaces.
[[nodiscard]] std::vector<OperatorEntry> entries_of(
    std::initializer_list<std::pair<void (*)(NodeConverter& node), std::string_view>> converters);

/// Returns the converters of convolutions, pooling, normalizations, activations and resizing.
[[nodiscard]] OperatorEntries network_operators();
/// Returns the converters of operators on blocks and patches of images.
[[nodiscard]] OperatorEntries block_operators();
/// Returns the converters of elementwise operators, comparisons, reductions and products.
[[nodiscard]] OperatorEntries math_operators();
/// Returns the converters of diagonals, segments and transforms, which are expressed with other operators.
[[nodiscard]] OperatorEntries matrix_operators();
/// Returns the converters of recurrent cells and layers.
[[nodiscard]] OperatorEntries cell_operators();
/// Returns the converters of operators that resample images with computed weights.
[[nodiscard]] OperatorEntries sampling_operators();
/// Returns the converters of operators on shapes, slices and constants.
[[nodiscard]] OperatorEntries array_operators();
/// Returns the converters of operators that gather, scatter and sort.
[[nodiscard]] OperatorEntries index_operators();
[[nodiscard]] OperatorEntries box_operators();   ///< Returns the converters of operators on the boxes of detectors.
[[nodiscard]] OperatorEntries list_operators();  ///< Returns the converters of operators on lists of tensors.
/// Returns the converters of operators that Grappler fused from several.
[[nodiscard]] OperatorEntries fused_operators();
[[nodiscard]] OperatorEntries quantize_operators();  ///< Returns the converters of quantization operators.

struct OperatorGroup {
  std::string_view name;
  OperatorEntries entries;
};

/// Returns the converters of all operators in groups with titles, such as "Recurrent cells", for the documentation.
[[nodiscard]] std::vector<OperatorGroup> all_operators();

/// Returns the converter of an operator, or null if Graft does not read the operator.
[[nodiscard]] const OperatorEntry* find_converter(std::string_view op);

/// Returns why an operator is refused, if there is a specific reason; otherwise an empty string.
[[nodiscard]] std::string reason_against(std::string_view op);

/// Returns which variants of an operator the reader refuses; empty if it reads every variant that an inference graph
/// contains.
[[nodiscard]] std::string_view limits_of(std::string_view op);

}  // namespace graft::tensorflow
