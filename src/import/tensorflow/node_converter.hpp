// Converts a node of a TensorFlow graph to nodes of ONNX: reads its inputs and attributes, and takes its results.
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

/// The end of a Slice that includes all elements to the last one.
inline constexpr std::int64_t to_the_end = std::numeric_limits<std::int64_t>::max();

class NodeConverter : public NodeBuilder {
 public:
  NodeConverter(const NodeDef& node, onnx::Graph& graph, onnx::ContentsMap& contents, ConstantBudget& budget,
                std::vector<onnx::Value*> inputs);

  [[nodiscard]] const std::string& op() const;

  // ---- Inputs
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] onnx::Value* input(std::size_t i) const;  ///< Throws Error if there is no such input.
  [[nodiscard]] onnx::ElementType type(std::size_t i) const;
  [[nodiscard]] std::optional<std::size_t> rank(const onnx::Value* value) const;
  /// Throws Error if the rank is unknown.
  [[nodiscard]] std::size_t known_rank(const onnx::Value* value, std::string_view why) const;
  [[nodiscard]] std::optional<onnx::TensorData> constant(std::size_t i) const;
  /// Returns the elements of a small integer input, also if they are computed from known shapes; nothing if unknown.
  [[nodiscard]] std::optional<Ints> ints(std::size_t i) const { return ints_in(input(i)); }
  [[nodiscard]] Ints known_ints(std::size_t i, std::string_view what) const;  ///< Throws Error if they are unknown.
  [[nodiscard]] std::int64_t known_int(std::size_t i, std::string_view what) const;

  // ---- Attributes; `otherwise` is returned if the node lacks one
  [[nodiscard]] std::int64_t int_or(const std::string& attribute, std::int64_t otherwise) const;
  [[nodiscard]] bool flag_or(const std::string& attribute, bool otherwise) const;
  [[nodiscard]] float float_or(const std::string& attribute, float otherwise) const;
  [[nodiscard]] std::string text_or(const std::string& attribute, std::string_view otherwise) const;
  /// Returns an empty list if the node lacks it.
  [[nodiscard]] std::vector<std::string> strings(const std::string& attribute) const;
  /// Returns an empty list if the node lacks it.
  [[nodiscard]] std::vector<float> floats(const std::string& attribute) const;
  [[nodiscard]] Ints ints_or(const std::string& attribute, Ints otherwise) const;
  /// Returns a shape, with -1 for a dynamic size; nothing if not even the rank is given.
  [[nodiscard]] std::optional<Ints> shape_or(const std::string& attribute) const;
  [[nodiscard]] onnx::ElementType type_or(const std::string& attribute, onnx::ElementType otherwise) const;

  onnx::Value* as_i64(std::size_t i) { return cast(input(i), onnx::ElementType::i64); }

  // ---- Results
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
};

/// An operator of TensorFlow and its converter.
struct OperatorEntry {
  std::string_view name;
  void (*convert)(NodeConverter& node);
};

using OperatorEntries = std::span<const OperatorEntry>;

/// Returns an entry for each of the operators, whose names single spaces separate, ordered by name.
[[nodiscard]] std::vector<OperatorEntry> entries_of(
    std::initializer_list<std::pair<void (*)(NodeConverter& node), std::string_view>> converters);

[[nodiscard]] OperatorEntries network_operators();   ///< Convolutions, pooling, norms, activations, resizing.
[[nodiscard]] OperatorEntries block_operators();     ///< Blocks and patches of images.
[[nodiscard]] OperatorEntries math_operators();      ///< Elementwise, comparison, reductions, products.
[[nodiscard]] OperatorEntries matrix_operators();    ///< Diagonals, segments, transforms, expressed by other operators.
[[nodiscard]] OperatorEntries array_operators();     ///< Shapes, slices, constants.
[[nodiscard]] OperatorEntries index_operators();     ///< Gathering, scattering, sorting.
[[nodiscard]] OperatorEntries box_operators();       ///< Boxes of detectors.
[[nodiscard]] OperatorEntries list_operators();      ///< Lists of tensors.
[[nodiscard]] OperatorEntries fused_operators();     ///< Operators that Grappler fused from several.
[[nodiscard]] OperatorEntries quantize_operators();  ///< Quantization.

struct OperatorGroup {
  std::string_view name;
  OperatorEntries entries;
};

/// Returns all operators.
[[nodiscard]] std::vector<OperatorGroup> all_operators();

/// Returns null for an operator that Graft does not read.
[[nodiscard]] const OperatorEntry* find_converter(std::string_view op);

/// Returns why an operator is not read, if there is more to report than that it is unknown; otherwise an empty string.
[[nodiscard]] std::string reason_against(std::string_view op);

/// Returns what the reader refuses of an operator; empty if it refuses nothing that an inference graph contains.
[[nodiscard]] std::string_view limits_of(std::string_view op);

}  // namespace graft::tensorflow
