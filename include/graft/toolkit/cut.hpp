// Cutting a network in two where neither TensorRT nor a plugin runs a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

/// A network in two halves. The second reads what the first gives, by name, and inputs of the whole network.
struct CutNetwork {
  Model tensorrt;
  Model host;  ///< For ONNX Runtime, or any other runtime of the host.
  bool tensorrt_is_first = true;
  std::vector<std::string> outputs;  ///< Of the whole network, in its order; each is an output of one half.

  /// Inputs that a run of both halves needs.
  [[nodiscard]] GRAFT_API std::vector<Port> inputs() const;
};

/// What a detector does with its last tensors on the host.
struct DetectionTail {
  enum class Kind : std::uint8_t {
    suppression,  ///< Non-maximum suppression (YOLO, SSD, Faster R-CNN).
    best,         ///< The best by score (DETR).
  };
  enum class Boxes : std::uint8_t {
    corners,          ///< Two opposite corners; of Kind::best whatever the network has.
    center_and_size,  ///< Center x and y, width, height.
  };
  Kind kind = Kind::suppression;
  NodeRef node;                     ///< NonMaxSuppression or TopK.
  std::vector<std::string> boxes;   ///< What is handed over and becomes the boxes.
  std::vector<std::string> scores;  ///< The same of the scores.
  Boxes form = Boxes::corners;
  std::optional<std::int64_t> most;  ///< Boxes, of each class for a suppression; nothing where the network computes it.
  std::optional<double> overlap;     ///< Intersection over union above which a box goes.
  std::optional<double> lowest_score;
};

struct CutOptions {
  /// Who judges what TensorRT runs. `convert` and `reduce` are not looked at: the model is cut as it is.
  InspectOptions inspect = {};
  /// False: nodes of ONNX's operators that run only because `build` makes Graft's plugins of them go to the host too.
  bool plugins = true;
  bool verify = true;                       ///< Run both halves beside the whole network.
  CpuEngine engine = CpuEngine::automatic;  ///< Runs them.
  Watch watch = {};                         ///< In place of that in `inspect`.
};

struct CutResult {
  Model model;  ///< That was cut.
  CutNetwork network;
  std::vector<Port> between;        ///< Handed from the first half to the second.
  std::vector<NodeSupport> causes;  ///< The nodes of the main graph, or inside it, that go to the host.
  std::size_t nodes_in_tensorrt = 0;
  std::size_t nodes_on_host = 0;
  double share_in_tensorrt = 0;  ///< Of the network's multiplications and additions, as far as sizes are known.
  std::vector<DetectionTail> tails;
  std::optional<VerifyResult> verified;  ///< The halves, run one after the other, against the whole network.
  std::string not_verified;              ///< Why they were not.
};

/// Cuts a network in two: TensorRT gets the half with most arithmetic, which is what comes before the nodes that it
/// does not run, or what comes after them. What is computed from constants and shapes alone is in each half that needs
/// it. Nothing where no node is known to fail. Throws Error (answer_is_no) where no half would compute anything in
/// TensorRT, and as `inspect` and `verify` do; Cancelled.
[[nodiscard]] GRAFT_API std::optional<CutResult> cut(const Model& model, const CutOptions& options = {});

struct CutFiles {
  std::filesystem::path network;  ///< Names the halves: "detector.cut.json".
  std::filesystem::path tensorrt;
  std::filesystem::path host;
};

/// Writes the half for TensorRT to `file`, the other one and the file that names both beside it: "detector.onnx",
/// "detector.host.onnx", "detector.cut.json". Each is written whole or not at all, the last one at the end.
GRAFT_API CutFiles save(const CutResult& result, const std::filesystem::path& file);

/// Reads both halves from the file that names them. `load` reads the same file as one network. Throws Error naming file
/// and key for what is malformed.
[[nodiscard]] GRAFT_API CutNetwork load_cut(const std::filesystem::path& file);

}  // namespace graft::toolkit
