// Two engines that compute one model differently: nothing that either says of it is believed.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "graft/node_ref.hpp"

namespace graft::verify {

/// One model, the same inputs, and results further apart than rounding explains.
struct Dispute {
  std::string model;   ///< Its source.
  std::string first;   ///< "OpenVINO 2026.4.1"
  std::string second;  ///< "ONNX Runtime 1.31.1"
  std::string output;  ///< Of the model.
  /// The first node whose result differs where both engines are given the same; nothing where none stands out.
  std::optional<NodeRef> node;
  std::string tensor;  ///< What that node makes.
  std::string difference;
  /// As KnownFaults says it of one of both engines, of the node or else of the model; empty where none is known.
  std::string known_fault = {};

  /// "OpenVINO 2026.4.1 and ONNX Runtime 1.31.1 disagree on model.onnx, first at node 'tanh' (Tanh), tensor 't': ...",
  /// and what is known of it.
  [[nodiscard]] std::string text() const;
};

/// Ends a run whose results are disputed. No Error, which passes and proofs catch and go on: comparisons and proofs
/// make a verdict of it.
class Disputed : public std::runtime_error {
 public:
  explicit Disputed(Dispute dispute) : std::runtime_error(dispute.text()), dispute_(std::move(dispute)) {}
  [[nodiscard]] const Dispute& dispute() const { return dispute_; }

 private:
  Dispute dispute_;
};

}  // namespace graft::verify
