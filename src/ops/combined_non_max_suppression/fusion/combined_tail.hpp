// The nodes that tf2onnx writes for TensorFlow's CombinedNonMaxSuppression, and the nodes that replace them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator/operator.hpp"
#include "onnx/model.hpp"

namespace graft::passes::suppression {

/// A NonMaxSuppression of several items and classes, and the nodes that sort its results into a fixed number of places
/// for each item. Values are named, because the edit also runs on copies of the graph.
struct CombinedTail {
  std::vector<onnx::Node*> nodes;
  std::vector<onnx::Value*> inputs;
  std::vector<onnx::Value*> outputs;

  std::string boxes;        ///< The name of the boxes (N,boxes,4).
  std::string scores;       ///< The name of the scores (N,classes,boxes).
  std::string found_boxes;  ///< The names of the results; empty for a result that the network does not have.
  std::string found_scores;
  std::string found_classes;
  std::string counts;

  std::int64_t places = 0;
  std::int64_t most_of_class = 0;
  float score_threshold = 0;
  float iou_threshold = 0;
  bool clips = false;
};

/// Reads the nodes around a NonMaxSuppression. Returns nothing if they are not those of tf2onnx; `why_not` is then set
/// if the first nodes are.
[[nodiscard]] std::optional<CombinedTail> read_combined_tail(onnx::Node& suppression, std::string& why_not);

/// Replaces the nodes of a tail by CombinedNonMaxSuppression with these attributes.
void replace_combined_tail(onnx::Graph& graph, const CombinedTail& tail, const Operator& op);

}  // namespace graft::passes::suppression
