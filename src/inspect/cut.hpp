// Splits a network into a half for TensorRT and a half for the host, which holds the nodes that TensorRT does not run.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The division of a network into two models, one for TensorRT and one for the host, of which one reads the results of
/// the other. Neither list contains nodes that compute only from constants and from the shapes of the network's inputs,
/// because each model that needs such nodes gets a copy.
struct Cut {
  bool tensorrt_is_first = true;
  std::vector<const onnx::Node*> tensorrt;  ///< The nodes for TensorRT, in topological order like the other lists.
  std::vector<const onnx::Node*> host;
  std::vector<const onnx::Value*> between;  ///< Values that the first half computes and the second half reads.
  double arithmetic = 0;                    ///< Operations of the whole network (inspect/arithmetic.hpp).
  double arithmetic_in_tensorrt = 0;
};

/// Returns the cut that leaves most of the arithmetic to TensorRT. Compares two cuts: in the first, the host runs the
/// nodes for which `runs_on_host` is true and all nodes that depend on them; in the second, the host runs these nodes
/// and all nodes on which they depend. In the first cut, the host also runs earlier nodes that only move data if this
/// reduces the bytes that TensorRT hands over. Returns nothing if `runs_on_host` is true for no node, or if no
/// arithmetic would remain in TensorRT. Types and shapes must have been inferred.
[[nodiscard]] std::optional<Cut> find_cut(const onnx::Model& model,
                                          const std::function<bool(const onnx::Node&)>& runs_on_host);

struct Halves {
  onnx::Model tensorrt;
  onnx::Model host;
};

/// Returns the model for TensorRT and the model for the host. Inputs, outputs and the values that one model hands to
/// the other keep their names. Outputs of the network that no node of `cut.tensorrt` computes are outputs of the host's
/// model. Throws Error naming a value that is handed over if its element type is unknown.
[[nodiscard]] Halves halves_of(const onnx::Model& model, const Cut& cut);

}  // namespace graft::inspect
