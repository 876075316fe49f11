// Splits a network into a half for TensorRT and a half for the host, which holds the nodes that TensorRT does not run.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The place where a network is cut. Constants, and nodes that compute only from constants and from the shapes of the
/// network's inputs, are in neither list of nodes: each half that needs them gets a copy.
struct Cut {
  bool tensorrt_is_first = true;
  std::vector<const onnx::Node*> tensorrt;  ///< The nodes for TensorRT, in topological order like the other lists.
  std::vector<const onnx::Node*> host;
  std::vector<const onnx::Value*> between;  ///< Values that the first half computes and the second half reads.
  double arithmetic = 0;                    ///< Operations of the whole network (inspect/arithmetic.hpp).
  double arithmetic_in_tensorrt = 0;
};

/// Returns the cut that leaves most of the arithmetic in TensorRT, or nothing if no node runs on the host or if no
/// arithmetic would be left in TensorRT. The cut lies either before the nodes that run on the host, with every node
/// that depends on them on the host, or after them, with every node on which they depend on the host. In the first
/// case, nodes before the cut that only move data go to the host if fewer bytes are then handed over. Types and shapes
/// must be inferred.
[[nodiscard]] std::optional<Cut> find_cut(const onnx::Model& model,
                                          const std::function<bool(const onnx::Node&)>& runs_on_host);

struct Halves {
  onnx::Model tensorrt;
  onnx::Model host;
};

/// Returns both halves as models. Inputs, outputs and the values between the halves keep their names; an output of the
/// network that no node of `cut.tensorrt` computes belongs to the host. Throws Error with the name of a value between
/// the halves whose element type is unknown.
[[nodiscard]] Halves halves_of(const onnx::Model& model, const Cut& cut);

}  // namespace graft::inspect
