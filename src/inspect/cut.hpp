// Splits a network into a half for TensorRT and a half for the host, which holds the nodes that TensorRT does not run.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The division of a network into one half for TensorRT and one for the host. Neither list of nodes contains constants,
/// and nodes that compute only from constants and from the shapes of the network's inputs, because each half that needs
/// them gets a copy.
struct Cut {
  bool tensorrt_is_first = true;
  std::vector<const onnx::Node*> tensorrt;  ///< The nodes for TensorRT, in topological order like the other lists.
  std::vector<const onnx::Node*> host;
  std::vector<const onnx::Value*> between;  ///< Values that the first half computes and the second half reads.
  double arithmetic = 0;                    ///< Operations of the whole network (inspect/arithmetic.hpp).
  double arithmetic_in_tensorrt = 0;
};

/// Returns the cut that leaves most of the arithmetic to TensorRT, or nothing if `runs_on_host` is true for no node or
/// if no arithmetic would remain in TensorRT. Two cuts are compared: before the nodes that must run on the host, with
/// all nodes that depend on them on the host, and after them, with all nodes on which they depend on the host. In the
/// first case, nodes before the cut that only move data are moved to the host if this reduces the bytes at the cut.
/// Types and shapes must have been inferred.
[[nodiscard]] std::optional<Cut> find_cut(const onnx::Model& model,
                                          const std::function<bool(const onnx::Node&)>& runs_on_host);

struct Halves {
  onnx::Model tensorrt;
  onnx::Model host;
};

/// Returns both halves as models. Inputs, outputs and the values at the cut keep their names. Outputs of the network
/// that no node of `cut.tensorrt` computes are outputs of the host's half. Throws Error with the name of a value at the
/// cut if its element type is unknown.
[[nodiscard]] Halves halves_of(const onnx::Model& model, const Cut& cut);

}  // namespace graft::inspect
