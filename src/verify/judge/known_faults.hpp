// The operators that a CPU engine is known to compute wrongly. tools/seeded_nodes.py generates the table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// An operator that a CPU engine computes wrongly, and the condition under which it does.
struct KnownFault {
  std::string_view engine;   ///< The name of the engine, for example "OpenVINO".
  std::string_view version;  ///< The version in which the fault was found.
  std::string_view op;       ///< The operator, of ONNX's own domain.
  /// The condition under which the fault occurs: a list of tests separated by ", ", such as "layout=1, type(0)=f16",
  /// which must all be true for the node (see holds_of). If empty, every node with the operator is computed wrongly.
  std::string_view condition;
  std::string_view evidence;  ///< The evidence: a test of ONNX or a seeded model, and its wrong result.
};

[[nodiscard]] std::span<const KnownFault> known_fault_table();

/// Returns whether a condition, a list of tests separated by ", ", is true for a node. Each test is one of:
/// - `name=value`: the attribute has this value as text; `name=absent`: the node does not have it.
/// - `given(i)`: input i is present. `constant(i)`: it is computed from constants only. `computed(i)`: it is not.
/// - `type(i)=f16`, `rank(i)=3`: input i has this type or rank. `fraction(i)`: the sizes of input 0 times the scales in
///   input i are not all integers. These are also true if the type, rank or number is unknown.
/// - `dynamic(i)`: a size of input i is unknown.
/// - `control(i)`: an If, Loop or Scan computes input i, directly or through nodes that move data.
[[nodiscard]] bool holds_of(std::string_view condition, const onnx::Node& node);

/// A table of known faults, by operator. Engine names may include a version ("OpenVINO 2026.4.1"); a fault counts for
/// all versions of its engine.
class KnownFaults {
 public:
  /// Builds the table. The strings in `table` must outlive this object.
  explicit KnownFaults(std::span<const KnownFault> table);

  /// Returns a description of the fault of a node in an engine, such as "node 'last' (GRU), which OpenVINO is known to
  /// compute wrongly: its values are wrong where `layout` is 1 (found in OpenVINO 2026.4.1)". Returns an empty string
  /// if no fault is known.
  [[nodiscard]] std::string of(const onnx::Node& node, std::string_view engine) const;

  /// Returns a description of the first known fault in a model, or an empty string. Functions and Graft's operators are
  /// inlined and shapes inferred first. A condition on an unknown property counts as fulfilled. A model without
  /// operators of the table costs one pass over its nodes.
  [[nodiscard]] std::string of(const onnx::Model& model, std::string_view engine) const;
  /// Returns the result of of() for each of several engines, in their order. The functions of the model are inlined
  /// only once.
  [[nodiscard]] std::vector<std::string> of(const onnx::Model& model, std::span<const std::string_view> engines) const;

 private:
  [[nodiscard]] std::string first_of(const onnx::Graph& graph, std::string_view engine) const;

  std::unordered_map<std::string_view, std::vector<KnownFault>> by_operator_;
};

/// Returns the table that is built into the program.
[[nodiscard]] const KnownFaults& known_faults();

}  // namespace graft::verify
