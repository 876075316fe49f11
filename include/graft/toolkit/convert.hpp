// Rewrites a model so that TensorRT can run it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/convert.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

using report::OperatorChoice;
using report::Plugins;
using report::Rewrite;

struct ConvertOptions {
  Plugins plugins = Plugins::automatic;
  std::vector<std::string> only = {};     ///< Names of the passes to run; empty: all.
  std::vector<std::string> without = {};  ///< Names of passes to leave out.
  /// The target release of TensorRT, one of releases(): nodes that this release is known to compute wrongly are
  /// rewritten, and its rules judge the nodes. Empty: no particular release.
  std::string release = {};
  std::filesystem::path rules = {};  ///< A YAML file with the caller's own rewrites (docs/guide/rules.md); empty: none.
  bool prove = true;                 ///< False: rewrites are applied without proofs, and no model is run.
  /// Prove also rewrites that differ from a proven rewrite only in the values of weights.
  bool prove_each = false;
  /// False: Graft's nodes get no ONNX functions, which TensorRT's own parser prefers to plugins. Such a model needs the
  /// plugin library, and other runtimes than Graft cannot run it.
  bool functions = true;
  CpuEngine engine = CpuEngine::automatic;  ///< The engine that runs the proofs.
  /// Compare the outputs of the result with those of the given model, as `verify` does, and parse and build the result
  /// with the installed TensorRT, for the sizes of `inspect` or for suggested ones. Where no TensorRT is installed, or
  /// `release` is set, only the rules judge. No outputs are compared without `prove` or with `rules`.
  bool check = true;
  /// How the check runs TensorRT. `judge`, `convert`, `release`, `reduce` and `watch` are ignored.
  InspectOptions inspect = {};
  Watch watch = {};
};

struct Conversion;

struct ConvertResult {
  Model model;
  std::vector<Rewrite> rewrites;
  std::vector<Rewrite> rejected;
  std::vector<OperatorChoice> choices;
  std::vector<std::string> warnings;  ///< Assumptions of rewrites, and the rejected rewrites with reasons.
  /// Rules that are not optional and were not applied everywhere, with reasons.
  std::vector<std::string> failed_rules;
  std::size_t proofs_run = 0;
  /// Whether TensorRT runs the result; nothing where that is not known. Where the check ran, whether TensorRT built the
  /// result.
  std::optional<bool> runs;
  std::vector<NodeSupport> problems;  ///< The nodes of the result that do not run, or for which that is not known.
  std::optional<ProbeSummary> check;  ///< The runs of TensorRT, where the check ran.
  std::string not_checked;            ///< Why the check did not run; empty where it ran.
  /// The verdict of `verify` on the given model and the result, with synthetic inputs; nothing where they were not
  /// compared.
  std::optional<Verdict> verified;
  std::string not_verified;                        ///< Why they were not compared; empty where they were.
  std::shared_ptr<const Conversion> details = {};  ///< Input of graft/toolkit/present.hpp.
};

/// Returns the names of the passes in the order in which they run.
[[nodiscard]] GRAFT_API std::vector<std::string> pass_names();

/// Rewrites a copy of the model. Runs on the CPU prove each rewrite; a rewrite whose proof disagrees is rejected. The
/// names of inputs and outputs are kept. Converting a converted model changes nothing. The check of the result starts
/// TensorRT as `build` does, in a child process that may crash.
///
/// Throws Error for an unknown pass or release, shapes of `inspect` that the inputs cannot have, a file of rules that
/// cannot be read, and an inconsistent model; Error (missing_tool) with `prove` in a build without a CPU engine;
/// Cancelled.
[[nodiscard]] GRAFT_API ConvertResult convert(const Model& model, const ConvertOptions& options = {});

}  // namespace graft::toolkit
