// How TensorRT will run each node of a model: by rule, or by asking the TensorRT that is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/build.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// How a node runs, from best to worst.
enum class Support : std::uint8_t {
  native,       ///< TensorRT runs it as it is.
  lowered,      ///< `convert` makes native layers of it.
  plugin,       ///< A plugin runs it.
  unknown,      ///< The rules do not know, and TensorRT was not asked.
  not_asked,    ///< TensorRT could not be asked about it: it comes after a node that does not run, or the budget is
                ///< spent.
  unsupported,  ///< By rule, neither TensorRT nor Graft runs it.
  refused,      ///< TensorRT's parser refuses it.
  fails,        ///< TensorRT's parser takes it, and the build fails.
  hangs,        ///< TensorRT does not come to an end with it.
  crashes,      ///< It ends TensorRT's process.
};

/// "native", "not asked" ...
[[nodiscard]] GRAFT_API std::string to_string(Support support);

/// Who judges.
enum class Judge : std::uint8_t {
  /// The parser and the builder of the TensorRT that is installed, within the budget, for suggested sizes where none
  /// are
  /// given; the rules where none is installed or a release is named.
  automatic,
  rule,     ///< Graft's rules, without TensorRT.
  parser,   ///< TensorRT's parser, and the rules where it takes a node.
  builder,  ///< TensorRT's parser and builder.
};

/// How often and how long TensorRT is asked. What has no answer by then is Support::not_asked.
struct ProbeBudget {
  double trial_seconds = 300;   ///< A parse or a build that takes longer counts as hanging.
  std::size_t max_builds = 60;  ///< In all.
  double max_seconds = 120;     ///< In all.
};

struct InspectOptions {
  Judge judge = Judge::automatic;
  bool convert = false;  ///< Inspect what `convert` makes of the model, with nothing proven.
  /// Judge by the rules of this release, which need not be installed: one of releases(). Empty: of the newest
  /// TensorRT-RTX that was measured. Only with Judge::automatic, which asks no TensorRT then, or Judge::rule.
  std::string release = {};
  ProbeBudget budget = {};
  ShapeRanges shapes = {};                                   ///< For the builder.
  std::vector<std::string> targets = {};                     ///< As BuildOptions::targets.
  std::vector<std::filesystem::path> plugin_libraries = {};  ///< Beside Graft's own.
  std::string tensorrt = "auto";                             ///< As BuildOptions::tensorrt.
  bool plugin_override = false;  ///< Plugins win over ONNX operators and functions of their name.
  /// An ONNX file for the smallest part of the model that TensorRT does not take; of several the worst, and the others
  /// beside it: "part.onnx", "part.2.onnx" ... Empty: none.
  std::filesystem::path reduce = {};
  Watch watch = {};
};

struct NodeSupport {
  NodeRef node;
  Support support = Support::native;
  std::string reason;  ///< Empty where there is nothing to say.
  std::string advice;  ///< What to do about a node that is not native.
  Judge judge = Judge::rule;
  std::string tensorrt;       ///< TensorRT's own words.
  std::string plugin;         ///< The plugin that TensorRT makes of it, and whose that is.
  std::optional<NodeRef> as;  ///< The same node elsewhere in the model, about which TensorRT was asked in its place.
};

/// Nodes of which one thing is said: problems of one operator, others with one reason.
struct NodeGroup {
  std::vector<std::size_t> nodes;  ///< Places in InspectResult::nodes; the first has the reason.
};

/// The smallest part of the model that shows one failure.
struct FailingPart {
  std::filesystem::path file;
  std::vector<NodeRef> nodes;     ///< They fail together.
  std::optional<NodeRef> inside;  ///< The one in a branch, a body or a function of `nodes` that fails.
  std::vector<NodeRef> alike;     ///< Nodes that fail alike.
  Support support = Support::refused;
};

/// What was asked of TensorRT.
struct ProbeSummary {
  std::string tensorrt;  ///< "TensorRT-RTX 1.7.1.116"
  std::size_t parses = 0;
  std::size_t builds = 0;
  double seconds = 0;
  bool built = false;               ///< The whole model, together: TensorRT runs it.
  std::string not_built;            ///< Why it was not, where nothing was found to fail; may be empty.
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX that it was built for.
  bool of_converted = false;        ///< What was built is what `convert` makes of the model, which alone TensorRT runs.
  std::size_t unanswered = 0;       ///< Nodes about which the budget allowed no answer.
  std::vector<FailingPart> reduced;
};

struct Inspection;

struct InspectResult {
  Model model;                      ///< That the nodes are of: the converted one where that was asked for.
  std::vector<NodeSupport> nodes;   ///< All of them, those of sub-graphs too.
  std::optional<bool> runs;         ///< Whether TensorRT runs the model; nothing where that is not known.
  std::vector<NodeGroup> problems;  ///< The worst first, of those the largest.
  std::vector<NodeGroup> others;    ///< They run, and there is a reason to tell; the largest first.
  std::vector<NodeGroup> plain;     ///< There is nothing to tell.
  std::vector<std::string> warnings;
  std::optional<ProbeSummary> probe;               ///< Where TensorRT was asked.
  std::string not_asked;                           ///< Why it was not: the rules spoke; empty where it was.
  std::shared_ptr<const Inspection> details = {};  ///< For graft/toolkit/present.hpp.
};

/// The releases of TensorRT of which rules are known: "rtx-1.5", "tensorrt-10.13" ...
[[nodiscard]] GRAFT_API std::vector<std::string> releases();

/// Judges every node of a model. Nothing is proven. TensorRT is started as `build` starts it, in a process that may
/// die: a crash of TensorRT is an answer. Only Judge::parser and Judge::builder need it to be installed. A node with a
/// fault (a missing attribute, types that contradict each other) is unsupported, and no Error. Throws Error
/// (missing_tool) where those two find no Python or no TensorRT, Error (bad_input) for shapes that do not fit the
/// model, for a release of which nothing is known, and for one with another judge than the rules; Cancelled.
[[nodiscard]] GRAFT_API InspectResult inspect(const Model& model, const InspectOptions& options = {});

}  // namespace graft::toolkit
