// Reports that two engines compute one model differently, so that the result of neither engine is trusted.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "graft/node_ref.hpp"

namespace graft::verify {

/// A model for which two engines return results, on the same inputs, that are further apart than rounding explains.
struct Dispute {
  std::string model;   ///< The source of the model.
  std::string first;   ///< "OpenVINO 2026.4.1"
  std::string second;  ///< "ONNX Runtime 1.31.1"
  std::string output;  ///< The name of the model's output.
  /// The first node whose result differs when both engines get the same inputs; nothing if no single node stands out.
  std::optional<NodeRef> node;
  std::string tensor;  ///< The output of that node.
  std::string difference;
  /// The entry of KnownFaults for one of the two engines and the node, or else the model; empty if no fault is known.
  std::string known_fault = {};

  /// Returns the message, with the known fault if there is one: "OpenVINO 2026.4.1 and ONNX Runtime 1.31.1 disagree on
  /// model.onnx, first at node 'tanh' (Tanh), tensor 't': ...".
  [[nodiscard]] std::string text() const;
};

/// Ends a run whose results are disputed. It is not an Error, because passes and proofs catch an Error and continue:
/// comparisons and proofs turn a Disputed into a verdict.
class Disputed : public std::runtime_error {
 public:
  explicit Disputed(Dispute dispute) : std::runtime_error(dispute.text()), dispute_(std::move(dispute)) {}
  [[nodiscard]] const Dispute& dispute() const { return dispute_; }

 private:
  Dispute dispute_;
};

}  // namespace graft::verify
