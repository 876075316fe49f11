// An inspection with all that it found out, for programs that show it.
#pragma once

#include <filesystem>
#include <functional>
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

  /// Whether TensorRT runs the model; nothing where that is not known.
  [[nodiscard]] std::optional<bool> runs() const { return inspect::runs(nodes); }
};

/// Reads a network and judges its nodes by rule. Throws Error as `load` does; messages call the shapes of the options
/// `shapes_name`. An empty release is the newest.
[[nodiscard]] Inspection inspect_file(const std::filesystem::path& file, const ImportOptions& import, bool convert,
                                      const std::string& shapes_name, const std::string& release = {});

/// Whether rules of a release of that name are known, with further numbers behind the second one or without.
[[nodiscard]] bool is_release(const std::string& name);

/// What the inspection says of each node.
[[nodiscard]] std::vector<NodeSupport> supports_of(const Inspection& inspection);

/// Told of each trial of TensorRT that has ended.
using TrialCallback = std::function<void(const inspect::TrialProgress& trial)>;

/// Asks TensorRT, corrects the verdicts and writes the smallest parts that fail. Throws EngineError where TensorRT does
/// not start, Error for shapes that do not fit the model; Cancelled.
void probe(Inspection& inspection, const inspect::ProbeOptions& options, const Watch& watch,
           const TrialCallback& on_end = {});

}  // namespace graft::toolkit
