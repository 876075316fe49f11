// An inspection with all that it found out, for programs that show it.
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
  ImportOptions import = {};  ///< With which the file was read, without the watch.
  Origin origin;
  graft::onnx::Model model;  ///< That was judged.
  bool is_converted = false;
  std::optional<inspect::Release> release;  ///< Whose rules these are; nothing for those of the newest.
  inspect::Prospect prospect;               ///< Of a model that is not converted; of another its warnings alone.
  std::vector<inspect::NodeVerdict> nodes;
  std::optional<inspect::ProbeAnswer> probe;
  std::string not_asked;  ///< Why TensorRT was not asked; empty where it was.
  /// Of the GPUs of a build without a target, those for which the plugin library has code; empty where it has for all.
  std::vector<std::string> targets_of_plugins;
  /// Whether `probe` has the build of what `graft convert` makes of the model, which TensorRT does not run as it is.
  bool is_probe_of_converted = false;

  /// Whether TensorRT built the model, or what `graft convert` makes of it.
  [[nodiscard]] bool is_built() const { return probe && probe->is_built; }
  /// Whether TensorRT runs the model; nothing where that is not known.
  [[nodiscard]] std::optional<bool> runs() const;
};

/// For Inspection::targets_of_plugins.
[[nodiscard]] std::vector<std::string> targets_of_plugins();

/// Inspection::not_asked where the caller chose the rules.
inline constexpr auto not_asked_by_rule = "the rules alone were wanted";
inline constexpr auto not_asked_for_release = "another release was named";

/// Reads a network and judges its nodes by rule. Throws Error as `load` does; messages call the shapes of the options
/// `shapes_name`. An empty release is the newest.
[[nodiscard]] Inspection inspect_file(const std::filesystem::path& file, const ImportOptions& import, bool convert,
                                      const std::string& shapes_name, const std::string& release = {});

/// Whether rules of a release of that name are known, with further numbers behind the second one or without.
[[nodiscard]] bool is_release(const std::string& name);

/// What the verdicts say of each node.
[[nodiscard]] std::vector<NodeSupport> supports_of(const std::vector<inspect::NodeVerdict>& nodes);

/// Told of each trial of TensorRT that has ended.
using TrialCallback = std::function<void(const inspect::TrialProgress& trial)>;

/// The probe of a call of the toolkit. Throws Error for a budget without sense.
[[nodiscard]] inspect::ProbeOptions probe_options(const InspectOptions& options);

/// What TensorRT was asked.
[[nodiscard]] ProbeSummary summary_of(const inspect::ProbeAnswer& answer);

/// Does what the `probe` below does, within a call of the toolkit. `trials` is a TensorRT that was started before;
/// without it, one is started.
void probe(Work& work, Inspection& inspection, const inspect::ProbeOptions& options, const TrialCallback& on_end = {},
           std::unique_ptr<inspect::DriverTrials> trials = nullptr);

/// Asks TensorRT, corrects the verdicts and writes the smallest parts that fail. An automatic probe of a model of which
/// nodes are lowered also builds what `graft convert` makes of it, and where no TensorRT is installed leaves the
/// verdicts of the rules. Throws EngineError where TensorRT does not start otherwise, Error for shapes that do not fit
/// the model; Cancelled.
void probe(Inspection& inspection, const inspect::ProbeOptions& options, const Watch& watch,
           const TrialCallback& on_end = {});

}  // namespace graft::toolkit
