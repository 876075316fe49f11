// Rewriting a model so that TensorRT can run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
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

enum class Plugins : std::uint8_t {
  automatic,  ///< A plugin where no native layer is exact and as fast.
  always,     ///< A plugin wherever an operator of Graft can stand.
  never,      ///< Standard operators only, where they can express it.
};

struct ConvertOptions {
  Plugins plugins = Plugins::automatic;
  std::vector<std::string> only = {};     ///< Passes to run; empty: all.
  std::vector<std::string> without = {};  ///< Passes to leave out.
  /// The release of TensorRT that the model is for, one of releases(): guards are put round what it is reported to
  /// compute wrongly, and the nodes are judged by its rules. Empty: none in particular.
  std::string release = {};
  std::filesystem::path rules = {};  ///< The caller's own changes, in YAML (docs/guide/rules.md); empty: none.
  bool prove = true;                 ///< False: rewrites are made without running anything.
  /// Prove also the rewrites that differ from a proven one in the values of weights alone.
  bool prove_each = false;
  /// False: Graft's nodes are left without their ONNX functions, which win over plugins in TensorRT's own parser. Such
  /// a model needs the plugin library, and other runtimes than Graft cannot run it.
  bool functions = true;
  CpuEngine engine = CpuEngine::automatic;  ///< Runs the proofs.
  /// Compare the values of the result with those of the given model, as `verify` does, and parse and build it with the
  /// TensorRT that is installed, for the sizes of `inspect` or for suggested ones. Where none is installed, or
  /// `release` is given, the rules judge alone. Without `prove`, and with `rules`, no values are compared.
  bool check = true;
  /// How the check asks TensorRT; `judge`, `convert`, `release`, `reduce` and `watch` are not looked at.
  InspectOptions inspect = {};
  Watch watch = {};
};

/// A change that was made, or that was rejected since its proof failed.
struct Rewrite {
  std::string pass;
  std::vector<NodeRef> nodes;  ///< The nodes that go.
  std::string others;          ///< What goes besides, and is no node: "3 Constant nodes"; mostly empty.
  std::string replacement;     ///< What comes: "LeakyReLU<alpha=0.1>".
  std::string reason;          ///< Why it may be done.
  std::string proof;           ///< What was run to prove it; of a rejected one, what disagreed.
};

/// How a node that an operator of Graft stands for runs in TensorRT.
struct OperatorChoice {
  enum class Kind : std::uint8_t { native, plugin, function };
  NodeRef node;
  std::string op;  ///< The operator's name.
  Kind kind = Kind::plugin;
  std::string reason;
};

struct Conversion;

struct ConvertResult {
  Model model;
  std::vector<Rewrite> rewrites;
  std::vector<Rewrite> rejected;
  std::vector<OperatorChoice> choices;
  std::vector<std::string> warnings;      ///< What rewrites assume, and which were rejected and why.
  std::vector<std::string> failed_rules;  ///< Rules that are not optional and were not done everywhere, and why.
  std::size_t proofs_run = 0;
  /// Whether TensorRT runs the result; nothing where that is not known. Where the check was made, whether it built.
  std::optional<bool> runs;
  std::vector<NodeSupport> problems;  ///< The nodes of the result that do not run, or of which that is not known.
  std::optional<ProbeSummary> check;  ///< Where the check was made.
  std::string not_checked;            ///< Why it was not; empty where it was.
  /// Whether the result computes what the given model computes: `verify` of the two, with synthetic inputs. Nothing
  /// where they were not compared.
  std::optional<Verdict> verified;
  std::string not_verified;                        ///< Why they were not; empty where they were.
  std::shared_ptr<const Conversion> details = {};  ///< For graft/toolkit/present.hpp.
};

/// The names of the passes, in the order in which they run.
[[nodiscard]] GRAFT_API std::vector<std::string> pass_names();

/// Rewrites a copy of the model; each rewrite is proven by runs on the CPU, and rejected where they disagree. The names
/// of inputs and outputs stay. Converting a converted model changes nothing. The check
/// of the result starts TensorRT as `build` does, in a process that may die. Throws Error for an unknown pass or
/// release, a file of rules that cannot be read, a model that contradicts itself, and (missing_tool) with `prove` in a
/// build without a CPU engine; Cancelled.
[[nodiscard]] GRAFT_API ConvertResult convert(const Model& model, const ConvertOptions& options = {});

}  // namespace graft::toolkit
