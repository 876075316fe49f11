// Judges the outputs of a detector by the inputs of its suppression: rounding changes the order of detections with
// nearly equal scores, and which of two such boxes is suppressed, so that elements at the same index have no relation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/comparison.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/classifiers.hpp"
#include "verify/compare/compare.hpp"

namespace graft::verify {

/// The end of a detector: its last suppressions (NonMaxSuppression, CombinedNonMaxSuppression, the plugins
/// EfficientNMS_TRT and BatchedNMS_TRT, and a Loop or If that contains one) and all nodes that compute outputs from
/// their results. A suppression before another one, such as the one of the proposals in Faster R-CNN, does not belong
/// to it.
class SuppressionTail {
 public:
  /// Returns the tail of a network; nothing if it has none, or if the tail cannot run on its own.
  [[nodiscard]] static std::optional<SuppressionTail> find(const onnx::Model& model);

  /// Returns the tensors that the tail reads, without constants.
  [[nodiscard]] const std::vector<std::string>& inputs() const { return inputs_; }
  [[nodiscard]] const OutputNames& outputs() const { return outputs_; }
  /// Returns the first of the suppressions, for messages: "node 'nms' (NonMaxSuppression)".
  [[nodiscard]] const std::string& description() const { return description_; }

  /// Returns whether another model computes tensors with the names of all inputs.
  [[nodiscard]] bool has_inputs(const onnx::Model& other) const;
  /// Returns the outputs that the tail computes from these tensors, which are converted to its types. Throws Error if
  /// the tail does not run with them.
  [[nodiscard]] runtime::TensorMap run(const runtime::Engine& engine, const runtime::TensorMap& tensors);

  /// Returns the figures of the input with the lowest signal-to-noise ratio, as figures of the output `name`.
  [[nodiscard]] report::OutputFigures figures(const std::string& name, const runtime::TensorMap& expected,
                                              const runtime::TensorMap& found) const;

 private:
  onnx::Model model_;
  std::vector<std::string> inputs_;
  OutputNames outputs_;
  std::string description_;
  std::shared_ptr<runtime::CompiledModel> compiled_;  ///< Compiled by the first run.
};

/// The detections of two models in one run, matched without their order.
struct MatchedDetections {
  std::size_t expected = 0;
  std::size_t found = 0;
  std::size_t matched = 0;  ///< Detections of the same class whose boxes overlap by at least 90 % (IoU).
  double largest_box_difference = 0;
  double largest_score_difference = 0;
  double largest_unmatched_score = 0;  ///< The largest score of a detection without a match, of either model.
  double lowest_score = 0;             ///< The lowest score of a detection of the reference.

  /// Returns for example "97 of 100 detections match, with a largest box difference of 0.25 and a largest score
  /// difference of 0.0012; the largest score of the others is 0.253, and the lowest of all is 0.252".
  [[nodiscard]] std::string text() const;
};

/// Matches the detections of two models if the outputs contain, for each item, boxes [.., N, 4], scores [.., N] and
/// integer classes [.., N] (x1, y1, x2, y2, or y before x). Detections with a score of 0 or less are padding. Returns
/// nothing for outputs in another form.
[[nodiscard]] std::optional<MatchedDetections> match_detections(const OutputNames& outputs,
                                                                const runtime::TensorMap& expected,
                                                                const runtime::TensorMap& found);

}  // namespace graft::verify
