// How types and shapes of an operator's outputs follow from its inputs: the rules behind infer_shapes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// What is known of the elements of small integer tensors, by value: the shapes that a model computes at run time.
using Contents = std::vector<Dim>;
using ContentsMap = std::unordered_map<const Value*, Contents>;

/// One node while its rule runs.
class NodeTypes {
 public:
  NodeTypes(Node& node, ContentsMap& contents) : node_(node), contents_(contents) {}

  [[nodiscard]] Node& node() const { return node_; }
  [[nodiscard]] std::int64_t opset() const { return node_.graph->opset(node_.domain); }
  [[nodiscard]] bool is_before(std::int64_t version) const { return opset() != 0 && opset() < version; }
  [[nodiscard]] bool has_input(std::size_t i) const { return node_.input(i) != nullptr; }
  [[nodiscard]] std::optional<ElementType> type(std::size_t i) const;
  [[nodiscard]] const Shape* shape(std::size_t i) const;  ///< Null where not even the rank is known.
  /// The elements of a small integer input; nothing where they are not known.
  [[nodiscard]] std::optional<Contents> contents(std::size_t i) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::size_t i) const;
  /// The integers of an attribute, or of the input that took its place in newer operator sets.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::string_view attribute, std::size_t input) const;
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::size_t i) const;
  /// Counted from the end where negative; throws Error if outside 0..rank-1.
  [[nodiscard]] std::size_t axis(std::int64_t value, std::size_t rank) const;

  void set_type(std::size_t output, std::optional<ElementType> type);
  /// Takes the place of what is declared, see merge.
  void set_shape(std::size_t output, Shape shape);
  void set_contents(std::size_t output, Contents contents);
  void copy(std::size_t input, std::size_t output = 0);  ///< Type and shape.

  [[noreturn]] void fail(const std::string& message) const;

 private:
  Node& node_;
  ContentsMap& contents_;
};

/// Runs the rule of an operator of ai.onnx without sub-graphs. False where Graft has no rule for it.
bool apply_shape_rule(NodeTypes& types);

/// The dimension, or an unknown one where its expression has grown beyond what anybody can use: a model that
/// concatenates a tensor with itself forty times would otherwise lead to text of 2^40 letters.
[[nodiscard]] Dim bounded(const Dim& dim);

/// One dimension of what two shapes broadcast to; throws Error for constants that do not agree.
[[nodiscard]] Dim broadcast(const Dim& a, const Dim& b, const NodeTypes& types);
/// The inferred dimension; the declared one where nothing could be inferred. What a file declares of inner values and
/// of outputs may be out of date: whoever makes the inputs of an exported model dynamic seldom changes it as well.
[[nodiscard]] Dim merge(const Dim& inferred, const Dim& declared);

}  // namespace graft::onnx
