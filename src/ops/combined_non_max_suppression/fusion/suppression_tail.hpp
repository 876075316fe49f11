// The nodes around a NonMaxSuppression whose results have a fixed number of places, and the nodes that replace them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/operator/operator.hpp"
#include "onnx/model.hpp"

namespace graft::passes::suppression {

/// A result of fixed size that a network computes from the selected boxes.
struct PaddedResult {
  std::string output;          ///< The name of the result.
  std::string rows;            ///< The name of the tensor with one element for each selected box.
  std::size_t axis = 0;        ///< The axis of the boxes.
  std::size_t rank = 1;        ///< The number of axes.
  onnx::TensorData fill = {};  ///< The element in the places after the last box.
};

/// A NonMaxSuppression of one item and one class, with the nodes around it. Values are named, because the edit also
/// runs on copies of the graph.
struct SuppressionTail {
  std::vector<onnx::Node*> nodes;    ///< The nodes that are replaced.
  std::vector<onnx::Value*> inputs;  ///< The values where the region begins.
  std::vector<onnx::Value*> outputs;

  std::string selected;  ///< The name of the result of NonMaxSuppression.
  std::string boxes;     ///< The names of its inputs.
  std::string scores;
  /// The tensors with one element for each box whose score is above a threshold, with the names of the tensors of all
  /// boxes that replace them.
  std::vector<std::pair<std::string, std::string>> of_all_boxes;
  /// The first outputs of the nodes that compute `boxes`, `scores` and tensors that are gathered from these tensors.
  std::vector<std::string> before;
  /// The first outputs of the nodes that compute `rows` from `selected`.
  std::vector<std::string> after;
  /// The outputs of nodes that shorten the list of selected boxes, with the names of their inputs.
  std::vector<std::pair<std::string, std::string>> shortened;
  std::vector<PaddedResult> results;
  /// The results of Shape of a tensor with one element for each selected box, with the names, the axes and the ranks of
  /// these tensors.
  std::vector<PaddedResult> shapes;
  std::string mask;  ///< The name of the mask of the candidates, or empty if `score_threshold` selects them.

  std::int64_t places = 0;  ///< The size of the results.
  std::int64_t most = 0;    ///< The maximum number of selected boxes.
  float score_threshold = 0;
  float iou_threshold = 0;
  bool is_center = false;
};

/// Reads the nodes around a NonMaxSuppression. Returns nothing if they cannot be replaced; `why_not` is then the
/// reason, and `matched` the number of nodes that were read.
[[nodiscard]] std::optional<SuppressionTail> read_tail(const onnx::Model& model, onnx::Node& suppression,
                                                       std::string& why_not, std::size_t& matched);

/// Replaces the nodes of a tail by CombinedNonMaxSuppression with these attributes and nodes of fixed sizes.
void replace_tail(onnx::Graph& graph, const SuppressionTail& tail, const Operator& op);

}  // namespace graft::passes::suppression
