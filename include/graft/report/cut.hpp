// The report of a cut: what a detector computes on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/field.hpp"

namespace graft::report {

/// The post-processing of a detector that runs on the host.
struct DetectionTail {
  enum class Kind : std::uint8_t {
    suppression,  ///< NonMaxSuppression (YOLO, SSD, Faster R-CNN).
    best,         ///< TopK of the scores, and Gather of the boxes (DETR).
  };
  /// How four numbers describe a box. For Kind::best this is the format in which the network returns boxes.
  enum class Boxes : std::uint8_t { corners, center_and_size };

  Kind kind = Kind::suppression;
  NodeRef node;
  std::vector<std::string> boxes;
  std::vector<std::string> scores;
  Boxes form = Boxes::corners;
  std::optional<std::int64_t> most = {};
  std::optional<double> overlap = {};
  std::optional<double> lowest_score = {};

  [[nodiscard]] bool is_center_and_size() const { return form == Boxes::center_and_size; }

  static constexpr auto fields() {
    return std::tuple{
        field(
            "kind", &DetectionTail::kind,
            "'suppression' (NonMaxSuppression, as in YOLO, SSD and Faster R-CNN) or 'best' (TopK of the scores, as in "
            "DETR)."),
        field("node", &DetectionTail::node, "The NonMaxSuppression or TopK node."),
        field("boxes", &DetectionTail::boxes, "The tensors between the halves from which the boxes are computed."),
        field("scores", &DetectionTail::scores, "The tensors between the halves from which the scores are computed."),
        field("is_center_and_size", nullptr, &DetectionTail::is_center_and_size,
              "Whether boxes are center x and y, width, height, and not two opposite corners."),
        field("most", &DetectionTail::most,
              "The maximum number of boxes, for each class with 'suppression'; None where it is not constant."),
        field("overlap", &DetectionTail::overlap,
              "The intersection over union above which a box is suppressed; only with 'suppression'."),
        field("lowest_score", &DetectionTail::lowest_score, "The score below which a box is dropped."),
    };
  }
};

/// Returns "suppression" or "best".
[[nodiscard]] inline std::string to_string(DetectionTail::Kind kind) {
  return kind == DetectionTail::Kind::suppression ? "suppression" : "best";
}

}  // namespace graft::report
