// One node of a TensorFlow graph while it becomes nodes of ONNX: what it reads, and what is put in its place.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/node_builder.hpp"
#include "import/tensorflow/tensor.hpp"

namespace graft::tensorflow {

class NodeDef;

/// The end of a Slice that takes all there is.
inline constexpr std::int64_t to_the_end = std::numeric_limits<std::int64_t>::max();

class NodeConverter : public NodeBuilder {
 public:
  NodeConverter(const NodeDef& node, onnx::Graph& graph, onnx::ContentsMap& contents, ConstantBudget& budget,
                std::vector<onnx::Value*> inputs);

  [[nodiscard]] const std::string& op() const;

  // ---- Inputs
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] onnx::Value* input(std::size_t i) const;  ///< Throws Error where there is none.
  [[nodiscard]] onnx::ElementType type(std::size_t i) const;
  [[nodiscard]] std::optional<std::size_t> rank(const onnx::Value* value) const;
  [[nodiscard]] std::size_t known_rank(const onnx::Value* value, std::string_view why) const;  ///< Or throws Error.
  [[nodiscard]] std::optional<onnx::TensorData> constant(std::size_t i) const;
  /// The elements of a small integer input, also where they are computed from shapes that are known.
  [[nodiscard]] std::optional<Ints> ints(std::size_t i) const { return ints_in(input(i)); }
  [[nodiscard]] Ints known_ints(std::size_t i, std::string_view what) const;  ///< Or throws Error.
  [[nodiscard]] std::int64_t known_int(std::size_t i, std::string_view what) const;

  // ---- Attributes; `otherwise` where the node does not carry it
  [[nodiscard]] std::int64_t int_or(const std::string& attribute, std::int64_t otherwise) const;
  [[nodiscard]] bool flag_or(const std::string& attribute, bool otherwise) const;
  [[nodiscard]] float float_or(const std::string& attribute, float otherwise) const;
  [[nodiscard]] std::string text_or(const std::string& attribute, std::string_view otherwise) const;
  [[nodiscard]] std::vector<std::string> strings(const std::string& attribute) const;  ///< Empty without it.
  [[nodiscard]] std::vector<float> floats(const std::string& attribute) const;         ///< The same.
  [[nodiscard]] Ints ints_or(const std::string& attribute, Ints otherwise) const;
  /// A shape, -1 where a size is open; nothing where not even the rank is given.
  [[nodiscard]] std::optional<Ints> shape_or(const std::string& attribute) const;
  [[nodiscard]] onnx::ElementType type_or(const std::string& attribute, onnx::ElementType otherwise) const;

  onnx::Value* as_i64(std::size_t i) { return cast(input(i), onnx::ElementType::i64); }

  // ---- Results
  /// Output `index` of the TensorFlow node. It gets the node's name unless it has another tensor's already.
  void give(std::size_t index, onnx::Value* value);
  void give(onnx::Value* value) { give(0, value); }
  [[nodiscard]] const std::vector<onnx::Value*>& results() const { return results_; }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  const NodeDef& node_;
  std::vector<onnx::Value*> inputs_;
  std::vector<onnx::Value*> results_;
};

/// An operator of TensorFlow and what converts it.
struct OperatorEntry {
  std::string_view name;
  void (*convert)(NodeConverter& node);
};

using OperatorEntries = std::span<const OperatorEntry>;

[[nodiscard]] OperatorEntries network_operators();   ///< Convolutions, pools, norms, activations, resizing.
[[nodiscard]] OperatorEntries block_operators();     ///< Blocks and patches of images.
[[nodiscard]] OperatorEntries math_operators();      ///< Elementwise, comparison, reductions, products.
[[nodiscard]] OperatorEntries matrix_operators();    ///< Diagonals, segments, transforms: maths by other operators.
[[nodiscard]] OperatorEntries array_operators();     ///< Shapes, slices, constants.
[[nodiscard]] OperatorEntries index_operators();     ///< Gathering, scattering, sorting.
[[nodiscard]] OperatorEntries box_operators();       ///< Boxes of detectors.
[[nodiscard]] OperatorEntries list_operators();      ///< Lists of tensors.
[[nodiscard]] OperatorEntries fused_operators();     ///< What Grappler made of several.
[[nodiscard]] OperatorEntries quantize_operators();  ///< Quantization.

struct OperatorGroup {
  std::string_view name;
  OperatorEntries entries;
};

/// All of them.
[[nodiscard]] std::vector<OperatorGroup> all_operators();

/// Null for an operator that Graft does not read.
[[nodiscard]] const OperatorEntry* find_converter(std::string_view op);

/// Why an operator is not read, where there is more to say than that it is unknown.
[[nodiscard]] std::string reason_against(std::string_view op);

/// What of an operator is refused; empty where nothing that an inference graph holds.
[[nodiscard]] std::string_view limits_of(std::string_view op);

}  // namespace graft::tensorflow
