// Determines how TensorRT will run each node of a model: by Graft's rules, or by running the installed TensorRT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "graft/report/inspect.hpp"
#include "graft/toolkit/build.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

using report::FailingPart;
using report::InspectReport;
using report::Judge;
using report::NodeGroup;
using report::NodeSupport;
using report::ProbeSummary;
using report::Support;

/// The limits for runs of TensorRT. A node that has no verdict when a limit is reached gets Support::not_asked.
struct ProbeBudget {
  double trial_seconds = 300;   ///< Seconds after which a parse or a build counts as hanging.
  std::size_t max_builds = 60;  ///< Maximum number of builds of a call.
  double max_seconds = 120;     ///< Seconds after which no further trial starts, counted from the start of the call.
};

/// Called after each parse and build of TensorRT, in the thread of the call. An exception ends the call, which throws
/// it.
using TrialCallback = std::function<void(const report::TrialProgress& trial)>;

struct InspectOptions {
  Judge judge = Judge::automatic;
  bool convert = false;  ///< Whether to inspect the model that `convert` writes, without proofs.
  /// The release whose rules judge the nodes, one of releases(); it need not be installed. If empty, the rules are
  /// those of the newest TensorRT-RTX that was measured. May be set only with Judge::rule or with Judge::automatic,
  /// which then does not run TensorRT.
  std::string release = {};
  ProbeBudget budget = {};
  ShapeRanges shapes = {};                                   ///< The shapes for which the builder builds.
  std::vector<std::string> shape_texts = {};                 ///< Further shapes: NAME=MIN..OPT..MAX or NAME=SHAPE.
  std::vector<std::string> targets = {};                     ///< See BuildOptions::targets.
  std::vector<std::filesystem::path> plugin_libraries = {};  ///< Plugin libraries in addition to Graft's own.
  std::string tensorrt = "auto";                             ///< See BuildOptions::tensorrt.
  bool plugin_override = false;  ///< Whether plugins replace ONNX operators and functions of the same name.
  /// The ONNX file for the smallest part of the model that TensorRT does not run. Where several parts fail, the worst
  /// is written to this file and the other parts next to it: "part.onnx", "part.2.onnx" ... If empty, no file is
  /// written.
  std::filesystem::path reduce = {};
  TrialCallback on_trial = {};  ///< Called after each parse and build.
  Watch watch = {};
};

/// Returns the settings for running TensorRT that a suggested next command has to repeat.
[[nodiscard]] GRAFT_API report::TrialSettings trial_settings(const InspectOptions& options);

/// Returns the releases of TensorRT for which Graft has rules: "rtx-1.5", "tensorrt-10.13" ...
[[nodiscard]] GRAFT_API std::vector<std::string> releases();

/// Returns whether there are rules for a release of this name. Numbers after the second one are ignored.
[[nodiscard]] GRAFT_API bool is_release(const std::string& name);

/// Judges every node of a model, without proofs. TensorRT runs as in `build`, in a child process: a crash of TensorRT
/// is a verdict. Only Judge::parser and Judge::builder require an installed TensorRT. A node with a fault (a missing
/// attribute, contradicting types) is unsupported and does not throw.
///
/// Throws Error (missing_tool) where these two find no Python or no TensorRT; Error (bad_input) for shapes that do not
/// fit the model, for a release without rules, and for a release with Judge::parser or Judge::builder; Cancelled.
[[nodiscard]] GRAFT_API InspectReport inspect(const Model& model, const InspectOptions& options = {});

/// Reads a network and inspects it. If the network is invalid for the sizes in `import.shapes`, for which `load`
/// throws, the verdict on the node is `unsupported` instead. `import.watch` is ignored. Otherwise throws the errors of
/// `load` and of `inspect`.
[[nodiscard]] GRAFT_API InspectReport inspect(const std::filesystem::path& file, const ImportOptions& import,
                                              const InspectOptions& options = {});

}  // namespace graft::toolkit
