// What each CPU engine is known to compute wrongly: data that tools/seeded_nodes.py writes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::verify {

struct KnownFault {
  std::string_view engine;     ///< "OpenVINO"
  std::string_view version;    ///< In which it was found.
  std::string_view op;         ///< Of ONNX's own domain.
  std::string_view condition;  ///< "layout=1, type(0)=f16": all of it holds of the node; empty: of every one.
  std::string_view evidence;   ///< A test of ONNX's or a seeded model, and what was wrong.
};

[[nodiscard]] std::span<const KnownFault> known_faults();

/// Whether a condition holds of a node: attributes by their text, or `absent`; of input i `given(i)`, `constant(i)`
/// (computed from constants alone counts), `type(i)=f16` and `rank(i)=3`, which hold where the type or rank is unknown.
[[nodiscard]] bool holds_of(std::string_view condition, const onnx::Node& node);

/// "node 'last' (GRU), which OpenVINO is known to compute wrongly where layout=1", of the first such node; empty where
/// there is none. `engine` is its name, with or without a version: a fault is taken to be in all versions until the
/// table is written again.
[[nodiscard]] std::string known_fault_of(const onnx::Model& model, std::string_view engine);

}  // namespace graft::verify
