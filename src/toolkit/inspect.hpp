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

/// The state of an inspection while its steps run: the report as far as it is complete, and values that later steps
/// need.
struct Inspection {
  report::InspectReport report;  ///< The report, with verdicts; `finish` sets the rest of its members.
  graft::onnx::Model model;      ///< The model that is inspected.
  /// Whether check_types was called before a conversion, so that it need not run again.
  bool has_checked_types = false;
  std::optional<inspect::Release> release;  ///< The release whose rules judge; if not set, the newest measured release.
  inspect::Prospect prospect;               ///< The forecast of a conversion; empty for a converted model.
  /// The verdicts on the nodes of the converted model, `prospect.converted`. They are set if a node that calls a
  /// function does not run. A conversion inlines the function, and the verdicts on the inlined nodes decide where the
  /// network is cut.
  std::vector<report::NodeSupport> converted_nodes;
  /// The names of the nodes in the file for which `graft new` can write an operator.
  std::set<std::string, std::less<>> nodes_to_define = {};
};

/// Returns the release of TensorRT with this name, or nothing for an empty name. Throws Error for an unknown name. Sets
/// `release` to the name, unless it is empty, and `rules` to the release whose rules are used: the named one, or the
/// newest that Graft knows.
[[nodiscard]] std::optional<inspect::Release> set_rules(const std::string& name, std::string& release,
                                                        report::TensorRTIdentity& rules);

/// Returns callbacks that report the progress of trial runs of TensorRT to `work`, from its current fraction to 1.
/// `on_end`, if it is set, is called after each trial.
[[nodiscard]] inspect::TrialCallbacks trial_callbacks(Work& work, TrialCallback on_end = {});

/// Returns the default GPUs of TensorRT-RTX for which Graft's plugin library has code, as
/// InspectReport::targets_of_plugins lists them. Returns an empty list if the library has code for all default GPUs.
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

/// Completes an inspection for which TensorRT is not run: stores the reason `why` in InspectReport::not_asked, and
/// marks nodes whose inputs have types that ONNX does not allow as unsupported. Throws Error for a model without
/// outputs.
void judge_by_rule_alone(Inspection& inspection, std::string why);

/// Throws the Error of check_types_and_outputs for a node whose inputs have types that ONNX does not allow, unless the
/// installed TensorRT builds a model with this node alone. Throws Cancelled if `is_stopped` returns true.
void check_types(const graft::onnx::Model& model, const inspect::ProbeOptions& options,
                 const std::function<bool()>& is_stopped);

/// The text in InspectReport::not_asked, the reason why TensorRT was not run, if the caller requested only the rules
/// (the first text) or named a release (the second text).
inline constexpr auto not_asked_by_rule = "only the rules were requested";
inline constexpr auto not_asked_for_release = "another release was requested";

/// Returns the options with which TensorRT is run for an inspection. Throws Error if the limit of its runs or of their
/// time is not positive.
[[nodiscard]] inspect::ProbeOptions probe_options(const InspectOptions& options);

/// Runs TensorRT on the model, corrects the verdicts on the nodes, and extracts the smallest parts of the model that
/// fail. If the caller did not choose TensorRT explicitly (`options.is_automatic`), also builds the converted model
/// where `convert` lowers nodes, and keeps the verdicts of the rules if no TensorRT is installed. `on_end`, if it is
/// set, is called after each parse and build. `trials` is a running TensorRT process; if it is null, one is started.
/// `stop` ends the processes that this call starts, and the call then throws Cancelled. Throws EngineError if an
/// installed TensorRT does not start; Error for shapes that do not fit the model; Cancelled.
void probe(Work& work, Inspection& inspection, const inspect::ProbeOptions& options, const TrialCallback& on_end = {},
           std::unique_ptr<inspect::DriverTrials> trials = nullptr, const CancelToken& stop = {});

}  // namespace graft::toolkit
