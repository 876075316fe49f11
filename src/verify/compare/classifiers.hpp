// Finds the outputs of a network that contain the scores of a classifier.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::verify {

using OutputNames = std::set<std::string, std::less<>>;

/// Returns the names of the real outputs of the main graph whose rows are scores of classes, so that the position of
/// the largest element of a row is the decision of the network:
///
/// 1. outputs that a Softmax, LogSoftmax or Hardmax along the axis of the classes computes or reads, that an ArgMax
///    along this axis reads, or whose name contains "logit" or "prob";
/// 2. if there are none, outputs [batch, classes] that no node reads and that a fully connected layer or the pooling of
///    a convolution computes, unless their name shows that they are features ("embed", "feature") or boxes ("box").
///
/// An output has at least two classes, and two or three dimensions, or further dimensions of 1 as in [batch, classes,
/// 1, 1].
[[nodiscard]] OutputNames classifier_outputs(const onnx::Model& model);

/// Returns the requested outputs, or classifier_outputs() if none are requested. Throws Error, which names Setting
/// judge_outputs, for a name that is no real output of the model.
[[nodiscard]] OutputNames classifier_outputs(const onnx::Model& model, const std::vector<std::string>& requested);

/// Returns the number of classes of a tensor of scores: the last dimension other than 1, as in [batch, classes, 1, 1];
/// 1 for a tensor without classes.
[[nodiscard]] std::size_t classes_of(const std::vector<std::int64_t>& dims);

/// Returns the only one of these outputs, for the accuracy with classes. Throws Error, which names Setting labels and
/// judge_outputs, unless there is exactly one.
[[nodiscard]] std::string output_for_labels(const OutputNames& outputs);

struct CountedLabels {
  std::int64_t samples = 0;
  std::int64_t correct = 0;
};

/// Returns the number of rows of the scores that have a class in `labels`, and the number of those whose largest score
/// is that of the class.
[[nodiscard]] CountedLabels count_correct(const onnx::TensorData& scores, std::span<const std::int64_t> labels);

}  // namespace graft::verify
