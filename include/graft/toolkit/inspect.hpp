// Determines how TensorRT will run each node of a model: by Graft's rules, or by running the installed TensorRT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/inspect.hpp"
#include "graft/toolkit/build.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

using report::FailingPart;
using report::Judge;
using report::NodeGroup;
using report::NodeSupport;
using report::ProbeSummary;
using report::Support;

/// The limits for runs of TensorRT. A node without a verdict when they are reached is Support::not_asked.
struct ProbeBudget {
  double trial_seconds = 300;   ///< Seconds after which a parse or a build counts as hanging.
  std::size_t max_builds = 60;  ///< Maximum number of builds of a call.
  double max_seconds = 120;     ///< Seconds after which no further trial starts, counted from the start of the call.
};

struct InspectOptions {
  Judge judge = Judge::automatic;
  bool convert = false;  ///< Inspect the model that `convert` writes, without proofs.
  /// Judge by the rules of this release, one of releases(), which need not be installed. Empty: the newest TensorRT-RTX
  /// that was measured. Only with Judge::automatic, which then does not run TensorRT, or Judge::rule.
  std::string release = {};
  ProbeBudget budget = {};
  ShapeRanges shapes = {};                                   ///< The shapes for which the builder builds.
  std::vector<std::string> targets = {};                     ///< See BuildOptions::targets.
  std::vector<std::filesystem::path> plugin_libraries = {};  ///< Plugin libraries in addition to Graft's own.
  std::string tensorrt = "auto";                             ///< See BuildOptions::tensorrt.
  bool plugin_override = false;  ///< Prefer plugins to ONNX operators and functions of the same name.
  /// The ONNX file for the smallest part of the model that TensorRT does not run. Where several parts fail, the worst
  /// is written to this file and the others next to it: "part.onnx", "part.2.onnx" ... Empty: none is written.
  std::filesystem::path reduce = {};
  Watch watch = {};
};

struct Inspection;

struct InspectResult {
  Model model;                     ///< The model that was inspected: the converted one with InspectOptions::convert.
  std::vector<NodeSupport> nodes;  ///< All nodes, including those of subgraphs.
  std::optional<bool> runs;        ///< Whether TensorRT runs the model; nothing where that is not known.
  /// Groups of nodes that do not run, may not run, or run as a plugin that gets wrong values; the worst verdict first,
  /// then the largest group.
  std::vector<NodeGroup> problems;
  std::vector<NodeGroup> others;  ///< Groups of nodes that run and have a reason; the largest first.
  std::vector<NodeGroup> plain;   ///< Groups of nodes that run and have no reason.
  std::vector<std::string> warnings;
  std::optional<ProbeSummary> probe;  ///< The runs of TensorRT, where it was run.
  std::string not_asked;              ///< Why TensorRT was not run, so that the rules judged; empty where it was run.
  std::shared_ptr<const Inspection> details = {};  ///< Input of graft/toolkit/present.hpp.
};

/// Returns the releases of TensorRT for which Graft has rules: "rtx-1.5", "tensorrt-10.13" ...
[[nodiscard]] GRAFT_API std::vector<std::string> releases();

/// Judges every node of a model, without proofs. TensorRT runs as in `build`, in a child process: a crash of TensorRT
/// is a verdict. Only Judge::parser and Judge::builder require an installed TensorRT. A node with a fault (a missing
/// attribute, contradicting types) is unsupported and does not throw.
///
/// Throws Error (missing_tool) where these two find no Python or no TensorRT; Error (bad_input) for shapes that do not
/// fit the model, for a release without rules, and for a release with Judge::parser or Judge::builder; Cancelled.
[[nodiscard]] GRAFT_API InspectResult inspect(const Model& model, const InspectOptions& options = {});

}  // namespace graft::toolkit
