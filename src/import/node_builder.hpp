// Builds nodes of ONNX while a network of another format is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/operator/attribute.hpp"
#include "graft/operator/operator.hpp"
#include "onnx/model.hpp"
#include "onnx/shape_rules.hpp"

namespace graft {

using Attributes = std::vector<std::pair<std::string, AttributeValue>>;
using Ints = std::vector<std::int64_t>;

/// Returns the tensor with permuted axes: axis i of the result is axis permutation[i] of the tensor. Throws Error for
/// strings and for element types smaller than a byte.
[[nodiscard]] onnx::TensorData transposed(const onnx::TensorData& tensor, const Ints& permutation);

/// Returns the tensor with the dimensions `dims`. Throws Error if these have another number of elements.
[[nodiscard]] onnx::TensorData reshaped(onnx::TensorData tensor, Ints dims);

/// The number of bytes that a reader may still use for constants that it computes from a few values in a file: tables
/// of indices, boxes, cosines. All nodes of a network share the budget, so that a small file cannot exhaust the memory.
struct ConstantBudget {
  static constexpr std::int64_t all = std::int64_t{32} << 20U;
  static constexpr std::int64_t largest = std::int64_t{16} << 20U;  ///< The largest size of a single constant in bytes.
  std::int64_t left = all;
};

/// Builds the ONNX nodes that replace a layer or node of another format. Infers the types and shapes of all results
/// immediately.
class NodeBuilder {
 public:
  /// Creates a builder for the layer `name`. Inner values of the layer are named `name:` and a word for their content.
  /// The metadata of each node record `type`, the type of the layer in its own format.
  NodeBuilder(onnx::Graph& graph, onnx::ContentsMap& contents, ConstantBudget& budget, std::string name,
              std::string type)
      : graph_(graph), contents_(contents), budget_(budget), name_(std::move(name)), type_(std::move(type)) {}

  /// Returns a builder that adds the nodes to the body of a Loop or an If.
  [[nodiscard]] NodeBuilder in_body(onnx::Graph& body) const {
    return {body, contents_, budget_, name_ + ":" + body.name, type_};
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] onnx::Graph& graph() { return graph_; }
  [[nodiscard]] ConstantBudget& budget() { return budget_; }

  /// Returns the elements of a small integer tensor, even if they are computed from known shapes; nothing if they are
  /// unknown.
  [[nodiscard]] std::optional<Ints> ints_in(const onnx::Value* value) const;
  /// Returns the elements of a small integer tensor as dimensions, which may be dynamic; nothing if they are unknown.
  [[nodiscard]] std::optional<onnx::Contents> dims_in(const onnx::Value* value) const;

  onnx::Value* add(const std::string& onnx_op, std::vector<onnx::Value*> inputs, const Attributes& attributes = {});
  std::vector<onnx::Value*> add_many(const std::string& onnx_op, std::vector<onnx::Value*> inputs, std::size_t outputs,
                                     const Attributes& attributes = {});
  /// Adds a node of one of Graft's own operators. Throws Error if the operator refuses the shapes.
  onnx::Value* add_operator(const Operator& op, std::vector<onnx::Value*> inputs);

  /// Throws Error if constants with this many elements exceed the ConstantBudget of the network. Call it before the
  /// elements are computed.
  void check_budget(std::int64_t elements, onnx::ElementType type) const;
  /// Adds a constant that is not a weight from the file, and subtracts its bytes from the ConstantBudget of the
  /// network.
  onnx::Value* constant_of(onnx::TensorData tensor);
  onnx::Value* ints_of(const Ints& values);                      ///< Adds a one-dimensional i64 constant.
  onnx::Value* scalar_of(double value, onnx::ElementType type);  ///< Adds a constant scalar.
  /// Adds a Cast. Returns the value itself if it already has the type.
  onnx::Value* cast(onnx::Value* value, onnx::ElementType type);
  /// Adds a Transpose. For a constant, adds a constant with permuted data instead.
  onnx::Value* transpose(onnx::Value* value, const Ints& permutation);
  /// Adds a Reshape. For a constant, adds a constant with the new dimensions instead if all of them are positive.
  onnx::Value* reshape(onnx::Value* value, const Ints& dims);
  /// Adds a Shape node, whose output is i64.
  onnx::Value* shape_of(onnx::Value* value) { return add("Shape", {value}); }
  /// Adds a Concat of one-dimensional values.
  onnx::Value* concat(const std::vector<onnx::Value*>& parts) {
    return add("Concat", parts, {{"axis", std::int64_t{0}}});
  }
  onnx::Value* slice_1d(onnx::Value* value, std::int64_t begin, std::int64_t end);

 private:
  onnx::Graph& graph_;
  onnx::ContentsMap& contents_;
  ConstantBudget& budget_;
  std::string name_;
  std::string type_;
};

}  // namespace graft
