// Cuts a network in two where neither TensorRT nor a plugin runs a part of it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/cut.hpp"
#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/error.hpp"
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
  /// Whether nodes of ONNX operators that `build` runs as Graft's plugins stay in the half for TensorRT. If false, they
  /// run on the host.
  bool plugins = true;
  /// Whether to run both halves and the whole network, compare the outputs, and load the half for the host in ONNX
  /// Runtime.
  bool verify = true;
  CpuEngine engine = CpuEngine::automatic;  ///< The engine of this comparison.
  Watch watch = {};                         ///< Used in place of `inspect.watch`.
};

/// The report with both halves as models.
struct CutResult : report::CutReport {
  Model model = {};  ///< The model that was cut.
  Model tensorrt_model = {};
  Model host_model = {};
  /// The comparison that led to `verdict`, with the model that to_page (graft/toolkit/present.hpp) needs; empty if
  /// there is no verdict.
  std::optional<VerifyResult> verified = {};

  [[nodiscard]] GRAFT_API CutNetwork network() const;
};

/// Thrown where no half of a network would compute anything in TensorRT.
class NoCut : public Error {
 public:
  using Error::Error;
};

/// Cuts a network in two. TensorRT gets the half with more arithmetic: either the nodes before those that it does not
/// run, or the nodes after them. Nodes whose results depend only on constants and shapes are in each half that needs
/// them. Returns nothing where no node is known to fail. Throws NoCut (answer_is_no) where no half would compute
/// anything in TensorRT, and Error as `inspect` and `verify` do; Cancelled.
[[nodiscard]] GRAFT_API std::optional<CutResult> cut(const Model& model, const CutOptions& options = {});

/// Cuts the model of a conversion, whose nodes are judged already; CutOptions::inspect is ignored. Throws NoCut, and
/// Error as `verify` does; Cancelled.
[[nodiscard]] GRAFT_API std::optional<CutResult> cut(const ConvertReport& report, const CutOptions& options = {});

/// The files of a network that was cut.
struct CutFiles {
  std::filesystem::path network;  ///< The file that names both halves: "detector.cut.json".
  std::filesystem::path tensorrt;
  std::filesystem::path host;
};

/// Returns the paths that `save` writes if the half for TensorRT is written to `file`. Writes nothing.
[[nodiscard]] GRAFT_API CutFiles cut_files(const std::filesystem::path& file);

/// Writes the half for TensorRT to `file`, and next to it the other half and the file that names both: "detector.onnx",
/// "detector.host.onnx", "detector.cut.json". Each file is written completely or not at all, "detector.cut.json" last.
/// The result then has the names of the files.
GRAFT_API CutFiles save(CutResult& result, const std::filesystem::path& file);

/// Returns whether the name of a file ends in ".cut.json", as the files that name both halves of a network do.
[[nodiscard]] GRAFT_API bool is_cut_network(const std::filesystem::path& file);

/// Reads both halves from the file that names them. `load` reads the same file as one network. Throws Error naming the
/// file and the key for a malformed file.
[[nodiscard]] GRAFT_API CutNetwork load_cut(const std::filesystem::path& file);

/// Throws Error for a file that names both halves of a network, before TensorRT gets the whole network; the message
/// names the half for TensorRT.
GRAFT_API void check_is_one_network(const std::filesystem::path& file);

}  // namespace graft::toolkit
