// A network in two halves: one that TensorRT runs, and one for the host, with what TensorRT does not run.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Where a network is cut. Nodes that compute with constants and with the shapes of the network's inputs alone are in
/// neither list: each half that needs them has them. So are constants.
struct Cut {
  bool tensorrt_is_first = true;
  std::vector<const onnx::Node*> tensorrt;  ///< In topological order, as all of these.
  std::vector<const onnx::Node*> host;
  std::vector<const onnx::Value*> between;  ///< Made by the first half, and read by the second.
  double arithmetic = 0;                    ///< Of the whole network (inspect/arithmetic.hpp).
  double arithmetic_in_tensorrt = 0;
};

/// Cuts the network where most of its arithmetic stays in TensorRT: before the nodes that it does not run, with all
/// that comes of them on the host, or behind them, with all that they need on the host. Of the nodes before the cut
/// that only move data, those go to the host that make what is handed over larger. Types and shapes are inferred.
/// Nothing where no arithmetic would be left in TensorRT.
[[nodiscard]] std::optional<Cut> find_cut(const onnx::Model& model,
                                          const std::function<bool(const onnx::Node&)>& runs_on_host);

struct Halves {
  onnx::Model tensorrt;
  onnx::Model host;
};

/// Both halves as models. Inputs, outputs and what is handed over keep their names; an output that is an input or a
/// constant is the host's. Throws Error where the element type of what is handed over is unknown, naming it.
[[nodiscard]] Halves halves_of(const onnx::Model& model, const Cut& cut);

}  // namespace graft::inspect
