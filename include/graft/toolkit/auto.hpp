// Builds an engine from a network in one call: convert, verify, quantize, build, and checks of the engine.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/report/auto.hpp"
#include "graft/toolkit/build.hpp"
#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/data.hpp"
#include "graft/toolkit/error.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/tensor.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

using report::AutoReport;
using report::AutoStep;
using report::EngineCheck;
using report::StepState;

/// The options of run_auto: the options of each step, and the inputs. run_auto sets the data, outputs, watches and logs
/// of the steps itself.
struct AutoOptions {
  ImportOptions import = {};  ///< The options for reading the network.
  /// The options of the conversion. `check` is ignored: the comparison and the build are separate steps.
  ConvertOptions convert = {};
  VerifyOptions verify = {};
  std::optional<QuantizeOptions> quantize = {};  ///< If not set, the network keeps its types.
  /// The options of the build; `layers` is always set. Empty `targets` stand for the GPU of this machine or, without a
  /// GPU, for those of TensorRT-RTX's default GPUs that run the plugins in the network.
  BuildOptions build = {};
  /// Inputs for the comparison and the calibration. If empty, inputs are synthetic. The comparison reads at most 64
  /// files of a folder. The calibration reads all files, or at most Int8Options::samples.
  DataFiles data_files = {};
  /// Inputs in memory, which replace `data_files`. They are written to data.npz in the folder.
  Tensors data = {};
  /// The folder for the models and the report, which is created. If empty, it is "digits.graft" for the engine
  /// "digits.engine".
  std::filesystem::path folder = {};
  /// Called before each step, with the state `not_reached` and the command of the step, and again after it. For a step
  /// that is not needed it is called once.
  std::function<void(const AutoReport& report, const AutoStep& step)> on_step = {};
  std::function<void(const std::string& note)> on_note = {};  ///< Called once with each of AutoReport::data_notes.
  LogCallback on_log = {};                                    ///< See BuildOptions::on_log.
  Watch watch = {};
};

/// Thrown where inputs need a range of sizes that the options do not have.
class MissingShapes : public Error {
 public:
  MissingShapes(const std::string& message, std::vector<std::string> ranges)
      : Error(message), ranges_(std::move(ranges)) {}

  /// Returns ranges with which the build is possible, for the inputs without ranges: NAME=MIN..OPT..MAX.
  [[nodiscard]] const std::vector<std::string>& ranges() const { return ranges_; }

 private:
  std::vector<std::string> ranges_;
};

/// Converts a network, compares the result with it, quantizes the result if the options have a precision, builds the
/// engine and checks it. Steps that are not needed do not run. The first step with a negative result ends the work:
/// values that differ, a precision that misses its limit, a network that TensorRT refuses. The report names the step,
/// and nothing is thrown.
///
/// The folder gets converted.onnx, quantized.onnx and data.npz, as far as they are needed. Each file, and the engine,
/// is written completely or not at all; other files in the folder stay. save() writes the report.
///
/// Throws Error (missing_tool), before anything is written, where TensorRT is not installed; Error (bad_input) for an
/// engine or a folder whose files would overwrite an input; MissingShapes; the other errors of `convert`, `verify`,
/// `quantize` and `build`; Cancelled.
[[nodiscard]] GRAFT_API AutoReport run_auto(const std::filesystem::path& model, const std::filesystem::path& engine,
                                            const AutoOptions& options = {});

/// Writes report.html and report.json to the folder of the report, each completely or not at all.
GRAFT_API void save(const AutoReport& report);

}  // namespace graft::toolkit
