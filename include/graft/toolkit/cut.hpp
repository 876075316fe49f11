// Cuts a network in two where neither TensorRT nor a plugin runs a part of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/cut.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

/// A network in two halves. The second half reads outputs of the first half, by name, and inputs of the whole network.
struct CutNetwork {
  Model tensorrt;
  Model host;  ///< The half for ONNX Runtime or another runtime on the host.
  bool tensorrt_is_first = true;
  std::vector<std::string> outputs;  ///< The outputs of the whole network, in its order; each is an output of one half.

  /// Returns the inputs that a run of both halves needs.
  [[nodiscard]] GRAFT_API std::vector<Port> inputs() const;
};

using report::DetectionTail;

struct CutOptions {
  /// How to determine the nodes that TensorRT does not run. `convert`, `reduce` and `watch` are ignored; the given
  /// model is cut as it is.
  InspectOptions inspect = {};
  /// False: nodes of ONNX's operators that `build` runs as Graft's plugins go to the host as well.
  bool plugins = true;
  /// Run both halves and the whole network, compare the outputs, and load the half for the host in ONNX Runtime.
  bool verify = true;
  CpuEngine engine = CpuEngine::automatic;  ///< The engine that runs them.
  Watch watch = {};                         ///< Used in place of `inspect.watch`.
};

struct CutResult {
  Model model;  ///< The model that was cut.
  CutNetwork network;
  std::vector<Port> between;        ///< The tensors that the first half passes to the second.
  std::vector<NodeSupport> causes;  ///< The nodes that TensorRT does not run or computes wrongly, also in subgraphs.
  std::size_t nodes_in_tensorrt = 0;
  std::size_t nodes_on_host = 0;
  /// The share of the multiplications and additions in TensorRT, 0 to 1, as far as sizes are known.
  double share_in_tensorrt = 0;
  std::vector<DetectionTail> tails;
  /// The comparison of the halves, run one after the other, with the whole network. Nothing where the outputs are the
  /// same but ONNX Runtime does not load the half for the host.
  std::optional<VerifyResult> verified;
  /// Why the halves are not known to be correct: they could not be compared, no output could be compared, or ONNX
  /// Runtime refuses the half for the host; empty otherwise.
  std::string not_verified;
  std::string host_engine;  ///< The CPU engine that computed the half for the host; empty where none did.
  /// The message with which ONNX Runtime refuses the file of the half for the host: "ONNX Runtime 1.31.1: ...". Empty
  /// if ONNX Runtime loads the half, if it is not installed, and if the options disable the comparison.
  std::string host_refused;
};

/// Cuts a network in two. TensorRT gets the half with more arithmetic: either the nodes before those that it does not
/// run, or the nodes after them. Nodes that are computed from constants and shapes only are in each half that needs
/// them. Returns nothing where no node is known to fail. Throws Error (answer_is_no) where no half would compute
/// anything in TensorRT, and Error as `inspect` and `verify` do; Cancelled.
[[nodiscard]] GRAFT_API std::optional<CutResult> cut(const Model& model, const CutOptions& options = {});

struct CutFiles {
  std::filesystem::path network;  ///< The file that names both halves: "detector.cut.json".
  std::filesystem::path tensorrt;
  std::filesystem::path host;
};

/// Writes the half for TensorRT to `file`, and next to it the other half and the file that names both: "detector.onnx",
/// "detector.host.onnx", "detector.cut.json". Each file is written completely or not at all, "detector.cut.json" last.
GRAFT_API CutFiles save(const CutResult& result, const std::filesystem::path& file);

/// Reads both halves from the file that names them. `load` reads the same file as one network. Throws Error naming the
/// file and the key for a malformed file.
[[nodiscard]] GRAFT_API CutNetwork load_cut(const std::filesystem::path& file);

}  // namespace graft::toolkit
