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

/// Returns the tensor with its axes in another order: axis i of the result is axis permutation[i] of the tensor. Throws
/// Error for strings and for types of less than a byte.
[[nodiscard]] onnx::TensorData transposed(const onnx::TensorData& tensor, const Ints& permutation);

/// Returns the elements under other dims of the same count; throws Error for another count.
[[nodiscard]] onnx::TensorData reshaped(onnx::TensorData tensor, Ints dims);

/// The bytes that may be used for constants which a reader computes from a few numbers in a file: tables of indices,
/// boxes, cosines. All nodes of a network share the budget, so that a small file cannot fill the memory.
struct ConstantBudget {
  static constexpr std::int64_t all = std::int64_t{32} << 20U;
  static constexpr std::int64_t largest = std::int64_t{16} << 20U;  ///< Limit for a single constant.
  std::int64_t left = all;
};

/// Builds the nodes that a layer or node of the other format becomes. Types and shapes of all results are inferred at
/// once.
class NodeBuilder {
 public:
  /// `name` is the name of the layer; values inside it are named `name:what`. `type` is noted on its nodes.
  NodeBuilder(onnx::Graph& graph, onnx::ContentsMap& contents, ConstantBudget& budget, std::string name,
              std::string type)
      : graph_(graph), contents_(contents), budget_(budget), name_(std::move(name)), type_(std::move(type)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] onnx::Graph& graph() { return graph_; }
  [[nodiscard]] ConstantBudget& budget() { return budget_; }

  /// Returns the elements of a small integer tensor, also if they are computed from known shapes; nothing if unknown.
  [[nodiscard]] std::optional<Ints> ints_in(const onnx::Value* value) const;
  /// Returns the elements as dimensions, also if they depend on dynamic ones.
  [[nodiscard]] std::optional<onnx::Contents> dims_in(const onnx::Value* value) const;

  onnx::Value* add(const std::string& onnx_op, std::vector<onnx::Value*> inputs, const Attributes& attributes = {});
  std::vector<onnx::Value*> add_many(const std::string& onnx_op, std::vector<onnx::Value*> inputs, std::size_t outputs,
                                     const Attributes& attributes = {});
  /// Adds a node of one of Graft's own operators. Throws Error if the operator refuses the shapes.
  onnx::Value* add_operator(const Operator& op, std::vector<onnx::Value*> inputs);

  /// Throws Error if constants of that many elements exceed the budget. Called before many elements are computed.
  void check_budget(std::int64_t elements, onnx::ElementType type) const;
  /// Adds a constant that is not a weight of the file; it counts against the budget.
  onnx::Value* constant_of(onnx::TensorData tensor);
  onnx::Value* ints_of(const Ints& values);                      ///< Adds an i64 constant of one dimension.
  onnx::Value* scalar_of(double value, onnx::ElementType type);  ///< Adds a constant scalar.
  /// Returns the value itself if it has the type.
  onnx::Value* cast(onnx::Value* value, onnx::ElementType type);
  onnx::Value* transpose(onnx::Value* value, const Ints& permutation);         ///< Permutes the data of a constant.
  onnx::Value* reshape(onnx::Value* value, const Ints& dims);                  ///< Reshapes the data of a constant.
  onnx::Value* shape_of(onnx::Value* value) { return add("Shape", {value}); }  ///< Returns the shape as i64.
  /// Concatenates one-dimensional values.
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
