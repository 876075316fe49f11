// An inspection with all its details, for programs that show them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/inspect.hpp"
#include "import/origin.hpp"
#include "inspect/forecast.hpp"
#include "inspect/probe_verdicts.hpp"
#include "inspect/tensorrt_release.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"

namespace graft::toolkit {

class Work;

struct Inspection {
  std::filesystem::path file;
  ImportOptions import = {};  ///< The options with which the file was read, without the watch.
  Origin origin;
  graft::onnx::Model model;  ///< The model that was inspected.
  bool is_converted = false;
  bool has_checked_types = false;           ///< Whether check_types was called, before a conversion.
  std::optional<inspect::Release> release;  ///< The release whose rules judge; nothing: the newest measured release.
  inspect::Prospect prospect;               ///< The forecast of a conversion; for a converted model only its warnings.
  std::vector<report::NodeSupport> nodes;
  /// The verdicts on the nodes of `prospect.converted`, where the call of a function does not run: a conversion inlines
  /// the function, so that these decide where the network is cut. Empty where no such call fails.
  std::vector<report::NodeSupport> converted_nodes;
  std::optional<report::ProbeSummary> probe;
  std::string not_asked;  ///< Why TensorRT was not run; empty where it was.
  /// The GPUs of a build without a target for which the plugin library has code; empty where it has code for all.
  std::vector<std::string> targets_of_plugins;
  /// NAME=MIN..OPT..MAX for each input that has fixed sizes by ImportOptions::shapes, and dynamic ones in the file.
  std::vector<std::string> ranges_of_given_shapes;
  /// Whether no build of the file can have ImportOptions::shapes: the file has other sizes, or none, for an input.
  bool given_shapes_need_conversion = false;

  /// Whether TensorRT was not run, so that rules gave all verdicts.
  [[nodiscard]] bool is_judged_by_rules() const { return !probe; }
  /// Whether TensorRT built the model, or the converted model.
  [[nodiscard]] bool is_built() const { return probe && probe->built; }
  /// Whether TensorRT runs the model; nothing where that is not known.
  [[nodiscard]] std::optional<bool> runs() const;
};

/// Corrects the advice on the nodes by what is known of the whole model: why `convert` does not rewrite a node, and
/// whether the network can be cut. To be called once, after the last verdict.
void correct_advice(Inspection& inspection);

/// Returns Inspection::targets_of_plugins.
[[nodiscard]] std::vector<std::string> targets_of_plugins();

/// Returns warnings about what a file says that ONNX does not allow or that contradicts its nodes, and that does not
/// keep TensorRT from building the model. The model has to be as it was read.
[[nodiscard]] std::vector<std::string> file_warnings(const graft::onnx::Model& model, const Origin& origin);

/// Returns a warning about the first input of unknown rank, or nothing where all ranks are known.
[[nodiscard]] std::optional<std::string> unknown_rank_warning(const graft::onnx::Model& model);

/// Sets Inspection::not_asked, and marks nodes whose inputs have types that ONNX does not allow as nodes with a fault.
/// Throws Error for a model without outputs.
void judge_by_rule_alone(Inspection& inspection, std::string why);

/// Throws the Error of check_types_and_outputs for a model that TensorRT does not build either: a node whose inputs
/// have types that ONNX does not allow is passed over if the installed TensorRT builds it by itself. Throws Cancelled
/// if `is_stopped` returns true.
void check_types(const graft::onnx::Model& model, const inspect::ProbeOptions& options,
                 const std::function<bool()>& is_stopped);

/// Values of Inspection::not_asked where the caller chose the rules, or named a release.
inline constexpr auto not_asked_by_rule = "only the rules were requested";
inline constexpr auto not_asked_for_release = "another release was requested";

/// Reads a network and judges its nodes by the rules of `release`; empty: the newest measured release. `shapes_name` is
/// the name of ImportOptions::shapes in messages. Throws the errors of `load`.
[[nodiscard]] Inspection inspect_file(const std::filesystem::path& file, const ImportOptions& import, bool convert,
                                      const std::string& shapes_name, const std::string& release = {});

/// Whether there are rules for a release of this name. Numbers after the second one are ignored.
[[nodiscard]] bool is_release(const std::string& name);

/// Called after each trial of TensorRT.
using TrialCallback = std::function<void(const inspect::TrialProgress& trial)>;

/// Returns the options of a probe. Throws Error for a budget that is not positive.
[[nodiscard]] inspect::ProbeOptions probe_options(const InspectOptions& options);

/// Does the same as the `probe` below, as part of a call of the toolkit. `trials` is a running TensorRT process;
/// without it, one is started. `stop` ends the runs of each process that is started here, and the call throws
/// Cancelled.
void probe(Work& work, Inspection& inspection, const inspect::ProbeOptions& options, const TrialCallback& on_end = {},
           std::unique_ptr<inspect::DriverTrials> trials = nullptr, const CancelToken& stop = {});

/// Runs TensorRT on the model, corrects the verdicts and writes the smallest parts that fail. An automatic probe also
/// builds the converted model where `convert` lowers nodes, and keeps the verdicts of the rules where no TensorRT is
/// installed. Throws EngineError where TensorRT does not start for another reason; Error for shapes that do not fit the
/// model; Cancelled.
void probe(Inspection& inspection, const inspect::ProbeOptions& options, const Watch& watch,
           const TrialCallback& on_end = {});

}  // namespace graft::toolkit
