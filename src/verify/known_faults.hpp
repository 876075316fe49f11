// What each CPU engine is known to compute wrongly: data that tools/seeded_nodes.py writes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

struct KnownFault {
  std::string_view engine;     ///< "OpenVINO"
  std::string_view version;    ///< In which it was found.
  std::string_view op;         ///< Of ONNX's own domain.
  std::string_view condition;  ///< "layout=1, type(0)=f16": all of it holds of the node; empty: of every one.
  std::string_view evidence;   ///< A test of ONNX's or a seeded model, and what was wrong.
};

[[nodiscard]] std::span<const KnownFault> known_fault_table();

/// Whether a condition holds of a node: attributes by their text, or `absent`; of input i `given(i)`, `constant(i)`
/// (computed from constants alone counts), `computed(i)` (it does not), `type(i)=f16`, `rank(i)=3` and `fraction(i)`
/// (the sizes of the first input times these scales are no integers), which hold where the type, rank or number is
/// unknown; `dynamic(i)` (a size is not known) and `control(i)` (it is made by an If, Loop or Scan, directly or through
/// nodes that move data).
[[nodiscard]] bool holds_of(std::string_view condition, const onnx::Node& node);

/// A table by operator. An engine is named with or without a version: a fault is taken to be in all versions until the
/// table is written again.
class KnownFaults {
 public:
  /// The strings of the table have to outlive it.
  explicit KnownFaults(std::span<const KnownFault> table);

  /// "node 'last' (GRU), which OpenVINO is known to compute wrongly where layout=1"; empty where it is not.
  [[nodiscard]] std::string of(const onnx::Node& node, std::string_view engine) const;

  /// The same of the first such node, functions and Graft's operators opened and shapes inferred: what stays unknown
  /// then counts as a fault. A model that has no operator of the table costs one pass over its nodes.
  [[nodiscard]] std::string of(const onnx::Model& model, std::string_view engine) const;
  /// For each of several engines; the model is opened once.
  [[nodiscard]] std::vector<std::string> of(const onnx::Model& model, std::span<const std::string_view> engines) const;

 private:
  [[nodiscard]] std::string first_of(const onnx::Graph& graph, std::string_view engine) const;

  std::unordered_map<std::string_view, std::vector<KnownFault>> by_operator_;
};

/// Of known_fault_table.
[[nodiscard]] const KnownFaults& known_faults();

}  // namespace graft::verify
