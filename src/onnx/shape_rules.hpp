// The rules of infer_shapes, which derive the types and shapes of an operator's outputs from its inputs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The elements of a small integer tensor as dimensions. With them, inference tracks shapes that a model computes at
/// run time.
using Contents = std::vector<Dim>;
using ContentsMap = std::unordered_map<const Value*, Contents>;

/// A node, with the inputs that its shape rule reads and the outputs that the rule sets.
class NodeTypes {
 public:
  NodeTypes(Node& node, ContentsMap& contents) : node_(node), contents_(contents) {}

  [[nodiscard]] Node& node() const { return node_; }
  [[nodiscard]] std::int64_t opset() const { return node_.graph->opset(node_.domain); }
  [[nodiscard]] bool is_before(std::int64_t version) const { return opset() != 0 && opset() < version; }
  [[nodiscard]] bool has_input(std::size_t i) const { return node_.input(i) != nullptr; }
  [[nodiscard]] std::optional<ElementType> type(std::size_t i) const;
  /// Returns the shape of an input, or null if not even the rank is known.
  [[nodiscard]] const Shape* shape(std::size_t i) const;
  /// Returns the type of a sequence or an optional; null for a tensor, and if the type is unknown.
  [[nodiscard]] const Container* container(std::size_t i) const;
  /// Returns the elements of a small integer input, or nothing if they are unknown.
  [[nodiscard]] std::optional<Contents> contents(std::size_t i) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::size_t i) const;
  /// Returns the integers of an attribute, or of the input that replaced the attribute in newer opsets; nothing if they
  /// are unknown.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::string_view attribute, std::size_t input) const;
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::size_t i) const;
  /// Converts an axis of a tensor of that rank, in which a negative value counts from the end, to one that counts from
  /// the front. Throws Error if there is no such axis.
  [[nodiscard]] std::size_t axis(std::int64_t value, std::size_t rank) const;

  void set_type(std::size_t output, std::optional<ElementType> type);
  /// Sets the shape of an output, merged with the declared one (see merge).
  void set_shape(std::size_t output, Shape shape);
  void set_contents(std::size_t output, Contents contents);
  void set_container(std::size_t output, const Container& container);
  /// Copies the type and the shape, or the container type, of an input to an output.
  void copy(std::size_t input, std::size_t output = 0);

  [[noreturn]] void fail(const std::string& message) const;

 private:
  Node& node_;
  ContentsMap& contents_;
};

/// Infers the outputs of a node of ai.onnx without subgraphs. Returns false and sets nothing if Graft has no rule for
/// its operator.
bool apply_shape_rule(NodeTypes& types);
/// Infers the outputs of a node of the domain com.microsoft, which ONNX Runtime defines. Returns false if Graft has no
/// rule for its operator.
bool apply_onnxruntime_shape_rule(NodeTypes& types);

/// Returns the dimension, or an unknown one if its expression is too long to be useful: without this limit, a model
/// that concatenates a tensor with itself forty times would lead to an expression of 2^40 letters.
[[nodiscard]] Dim bounded(const Dim& dim);

/// Returns the dimension to which two dimensions broadcast. Throws Error for constants that do not broadcast.
[[nodiscard]] Dim broadcast(const Dim& a, const Dim& b, const NodeTypes& types);
/// Returns the inferred dimension. Returns the declared one if the inferred one is unknown, or if it depends on an
/// unknown one while the declared one is constant. Declarations of inner values and outputs may be out of date: they
/// are seldom changed when the inputs of an exported model are made dynamic.
[[nodiscard]] Dim merge(const Dim& inferred, const Dim& declared);
/// Returns the shape of a tensor that has one of two shapes, with unknown dimensions where the shapes differ; nothing
/// if one of the shapes is unknown or their ranks differ.
[[nodiscard]] std::optional<Shape> either_of(const std::optional<Shape>& a, const std::optional<Shape>& b);
/// Returns the shape of one tensor in a sequence or an optional. Where the tensors may differ, each call creates new
/// unknown dimensions, because two tensors need not have equal sizes.
[[nodiscard]] std::optional<Shape> shape_of_element(const Container& container);

}  // namespace graft::onnx
