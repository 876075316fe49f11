// The steps of an inspection, which `convert` and `cut` use as well.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graft/toolkit/inspect.hpp"
#include "inspect/forecast.hpp"
#include "inspect/probe_verdicts.hpp"
#include "inspect/tensorrt_release.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"

namespace graft::toolkit {

class Work;

/// An inspection that is not finished: its report, and what later steps need.
struct Inspection {
  report::InspectReport report;  ///< The report, with verdicts; `finish` sets the rest of its members.
  graft::onnx::Model model;      ///< The model that is inspected.
  /// Whether check_types was called before a conversion, so that it need not run again.
  bool has_checked_types = false;
  std::optional<inspect::Release> release;  ///< The release whose rules judge; if not set, the newest measured release.
  inspect::Prospect prospect;               ///< The forecast of a conversion; empty for a converted model.
  /// The verdicts on the nodes of `prospect.converted`. Set if a node that calls a function does not run: a conversion
  /// inlines the function, and the verdicts on the inlined nodes decide where the network is cut.
  std::vector<report::NodeSupport> converted_nodes;
  /// The names of the nodes in the file for which `graft new` can write an operator.
  std::set<std::string, std::less<>> nodes_to_define = {};
};

/// Sets `release` and `rules` of the report of an inspection or a conversion. Returns the release of that name, or
/// nothing for an empty name, with which the rules of the newest measured release judge. Throws Error for other names.
[[nodiscard]] std::optional<inspect::Release> set_rules(const std::string& name, std::string& release,
                                                        report::TensorRTIdentity& rules);

/// Returns callbacks for trials of TensorRT that report their progress to `work`, from its current fraction to 1.
/// `on_end` is called after each trial.
[[nodiscard]] inspect::TrialCallbacks trial_callbacks(Work& work, TrialCallback on_end = {});

/// Returns the GPUs for which the plugin library has code, for InspectReport::targets_of_plugins; empty if it has code
/// for all GPUs of a build without a target.
[[nodiscard]] std::vector<std::string> targets_of_plugins();

/// Returns the targets for which Graft's plugin library has no code, and adds a warning about them to `warnings`.
/// Returns an empty list if no node runs as a plugin of this library.
[[nodiscard]] std::vector<std::string> find_targets_without_plugins(const std::vector<report::NodeSupport>& nodes,
                                                                    const std::vector<std::string>& targets,
                                                                    std::vector<std::string>& warnings);

/// Returns a warning for each statement in an ONNX file that ONNX does not allow or that contradicts the nodes, but
/// that does not prevent TensorRT from building the model. Returns an empty list if `origin` names another format. The
/// model must be unchanged since it was read.
[[nodiscard]] std::vector<std::string> file_warnings(const graft::onnx::Model& model, const report::Origin& origin);

/// Returns a warning about the first input of unknown rank, or nothing where all ranks are known.
[[nodiscard]] std::optional<std::string> unknown_rank_warning(const graft::onnx::Model& model);

/// Sets InspectReport::not_asked to `why`, and marks nodes whose inputs have types that ONNX does not allow as
/// unsupported. Throws Error for a model without outputs.
void judge_by_rule_alone(Inspection& inspection, std::string why);

/// Throws the Error of check_types_and_outputs for a node whose inputs have types that ONNX does not allow, unless the
/// installed TensorRT builds a model with this node alone. Throws Cancelled if `is_stopped` returns true.
void check_types(const graft::onnx::Model& model, const inspect::ProbeOptions& options,
                 const std::function<bool()>& is_stopped);

/// The values of InspectReport::not_asked if the caller requested the rules, or named a release.
inline constexpr auto not_asked_by_rule = "only the rules were requested";
inline constexpr auto not_asked_for_release = "another release was requested";

/// Returns the options of a probe. Throws Error for a budget that is not positive.
[[nodiscard]] inspect::ProbeOptions probe_options(const InspectOptions& options);

/// Runs TensorRT on the model, corrects the verdicts and writes the smallest parts that fail. An automatic probe also
/// builds the converted model where `convert` lowers nodes, and keeps the verdicts of the rules where no TensorRT is
/// installed. `on_end` is called after each parse and build. `trials` is a running TensorRT process; without it, one is
/// started. `stop` ends the runs of each process that is started here, and the call throws Cancelled. Throws
/// EngineError where TensorRT does not start for another reason; Error for shapes that do not fit the model; Cancelled.
void probe(Work& work, Inspection& inspection, const inspect::ProbeOptions& options, const TrialCallback& on_end = {},
           std::unique_ptr<inspect::DriverTrials> trials = nullptr, const CancelToken& stop = {});

}  // namespace graft::toolkit
