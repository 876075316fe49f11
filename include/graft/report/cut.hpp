// The report of a cut: both halves of the network, the reason for the cut, and the comparison with the whole network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/comparison.hpp"
#include "graft/report/field.hpp"
#include "graft/report/inspect.hpp"
#include "graft/report/port.hpp"

namespace graft::report {

/// The post-processing of a detector that runs on the host.
struct DetectionTail {
  enum class Kind : std::uint8_t {
    suppression,  ///< NonMaxSuppression (YOLO, SSD, Faster R-CNN).
    best,         ///< TopK of the scores, followed by Gather of the boxes (DETR).
  };
  /// How four numbers describe a box. For Kind::best this is the box format of the network's output.
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
  /// Returns the box format that the node reads, or nothing for TopK, which reads no boxes.
  [[nodiscard]] std::optional<Boxes> read_form() const {
    return kind == Kind::suppression ? std::optional(form) : std::nullopt;
  }

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
              "Whether a box is its center x and y, width and height, instead of two opposite corners."),
        field(
            nullptr, "form", &DetectionTail::read_form,
            "The format of the boxes that NonMaxSuppression reads: 'corners' or 'center_and_size'; null with 'best'."),
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

/// Returns "corners" or "center_and_size".
[[nodiscard]] inline std::string to_string(DetectionTail::Boxes form) {
  return form == DetectionTail::Boxes::corners ? "corners" : "center_and_size";
}

/// A half of a network that was cut in two.
struct CutHalf {
  std::filesystem::path file = {};  ///< The file of the half; empty before it is written.
  std::size_t nodes = 0;
  std::vector<Port> inputs;
  std::vector<Port> outputs;

  [[nodiscard]] std::string file_name() const { return file.filename().string(); }

  static constexpr auto fields() {
    return std::tuple{
        field("file", &CutHalf::file_name, "The ONNX file, in the folder of the file that names both halves."),
        field("nodes", &CutHalf::nodes, "The number of nodes."),
        field("inputs", &CutHalf::inputs, "The inputs that a run needs."),
        field("outputs", &CutHalf::outputs, "The outputs."),
    };
  }
};

/// A node that TensorRT does not run or computes wrongly, as recorded in the file that names both halves.
struct CutCause {
  NodeRef node;
  Support support = Support::native;
  std::string reason;

  [[nodiscard]] const std::string& op() const { return node.op; }

  static constexpr auto fields() {
    return std::tuple{
        field("node", &CutCause::node, "The node."),
        field("op", "operator", &CutCause::op, "The operator, such as 'NonMaxSuppression'."),
        field("support", "verdict", &CutCause::support, "How TensorRT would run the node."),
        field("reason", &CutCause::reason, "The reason for the verdict."),
    };
  }
};

/// The value of the key `schema` in the file that names both halves.
inline constexpr std::string_view cut_schema = "graft.cut/1";

/// The content of the file that names both halves of a network ("detector.cut.json").
struct CutHalves {
  bool tensorrt_is_first = true;
  CutHalf tensorrt;
  CutHalf host;
  std::vector<Port> between;
  std::vector<std::string> outputs;
  double share_in_tensorrt = 0;
  std::vector<NodeSupport> causes;
  std::vector<DetectionTail> tails;

  [[nodiscard]] std::string_view schema_text() const { return cut_schema; }
  [[nodiscard]] std::string_view first() const { return tensorrt_is_first ? "tensorrt" : "host"; }
  [[nodiscard]] std::size_t nodes_in_tensorrt() const { return tensorrt.nodes; }
  [[nodiscard]] std::size_t nodes_on_host() const { return host.nodes; }
  [[nodiscard]] std::vector<CutCause> short_causes() const {
    std::vector<CutCause> listed;
    for (const NodeSupport& cause : causes) listed.push_back({cause.node, cause.support, cause.reason});
    return listed;
  }

  static constexpr Schema schema{"the file that names both halves of a network that graft convert --cut wrote", 1,
                                 "Tensors between the halves have the same name in both; a dynamic size is -1."};
  static constexpr auto fields() {
    return std::tuple{
        field(nullptr, "schema", &CutHalves::schema_text, "'graft.cut/1'."),
        field(nullptr, "first", &CutHalves::first, "The half that runs first: 'tensorrt' or 'host'."),
        field(nullptr, "tensorrt", &CutHalves::tensorrt, "The half for TensorRT."),
        field(nullptr, "host", &CutHalves::host, "The half for ONNX Runtime or another runtime on the host."),
        field("between", &CutHalves::between, "The tensors that the first half passes to the second."),
        field(nullptr, "outputs", &CutHalves::outputs,
              "The outputs of the whole network, in its order; each is an output of one half."),
        field("nodes_in_tensorrt", nullptr, &CutHalves::nodes_in_tensorrt,
              "The number of nodes of the half for TensorRT."),
        field("nodes_on_host", nullptr, &CutHalves::nodes_on_host, "The number of nodes of the half for the host."),
        field("share_in_tensorrt", &CutHalves::share_in_tensorrt,
              "The share of the multiplications and additions in TensorRT, 0 to 1, as far as sizes are known."),
        field("causes", nullptr, &CutHalves::causes,
              "The nodes that TensorRT does not run or computes wrongly, also those in subgraphs."),
        field(nullptr, "causes", &CutHalves::short_causes,
              "The nodes that TensorRT does not run or computes wrongly, also those in subgraphs."),
        field("tails", &CutHalves::tails, "The post-processing of a detector that runs on the host."),
    };
  }
};

struct CutReport : CutHalves {
  std::filesystem::path file = {};
  /// The verdict on the halves: they are run one after the other, and their outputs are compared with those of the
  /// whole network. Empty if the halves were not compared, or if the outputs agree but ONNX Runtime cannot load the
  /// half for the host.
  std::optional<Verdict> verdict = {};
  std::string not_verified = {};
  std::string host_engine = {};
  std::string host_refused = {};

  /// Returns the verdict as JSON has it, with underscores, such as "nothing_compared"; nothing if there is no verdict.
  [[nodiscard]] std::optional<std::string> verdict_key() const {
    if (!verdict) return std::nullopt;
    return *verdict == Verdict::nothing_compared ? "nothing_compared" : to_string(*verdict);
  }

  static constexpr auto fields() {
    return std::tuple_cat(
        CutHalves::fields(),
        std::tuple{
            field(nullptr, "file", &CutReport::file, "The file that names both halves; empty if it was not written."),
            field(nullptr, "verified", &CutReport::verdict_key,
                  "The halves, run one after the other, compared with the whole network: 'same', 'different', "
                  "'nothing_compared' or 'disputed'. Null if they were not compared, also where the outputs are the "
                  "same and ONNX Runtime refuses the half for the host."),
            field("not_verified", &CutReport::not_verified,
                  "Why the halves could not be compared, why no element of one of their outputs could be compared, or "
                  "why the halves are not verified although their outputs are the same; empty otherwise."),
            field("host_engine", &CutReport::host_engine,
                  "The CPU engine that computed the half for the host; empty where none did."),
            field("host_refused", &CutReport::host_refused,
                  "The message with which ONNX Runtime refuses the half for the host, 'ONNX Runtime 1.31.1: ...'; "
                  "empty if it loads the half, if it is not installed, or if the options request no comparison."),
        });
  }
};

}  // namespace graft::report
