// A conversion with all that it found out, for programs that show it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/import.hpp"
#include "import/origin.hpp"
#include "inspect/probe_verdicts.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"
#include "passes/report.hpp"
#include "toolkit/inspect.hpp"
#include "toolkit/value_check.hpp"

namespace graft::toolkit {

struct ConvertRequest {
  std::filesystem::path file;
  ImportOptions import = {};
  ConvertOptions options = {};
  /// How messages call ImportOptions::shapes and the passes.
  std::string shapes_name = "ImportOptions::shapes";
};

struct Conversion {
  struct Seconds {
    double read = 0;
    double rewrite = 0;
    double prove = 0;
    double compare = 0;
    double write = 0;
  };

  std::filesystem::path file;
  ImportOptions import = {};  ///< With which the file was read, without the watch.
  Origin origin;
  graft::onnx::Model original;  ///< As it was read.
  graft::onnx::Model model;
  /// The result with its functions, in which its values are compared; empty if `model` has them.
  std::optional<graft::onnx::Model> with_functions;
  std::optional<inspect::Release> release;  ///< That it is for; nothing where none was named.
  bool is_proven = true;                    ///< False: nothing was run.
  passes::ConvertReport report;
  std::vector<inspect::NodeVerdict> failed_before;  ///< Nodes of the model before that TensorRT does not run.
  std::vector<inspect::NodeVerdict> nodes;          ///< Of the model after.
  std::size_t nodes_before = 0;
  std::size_t nodes_after = 0;
  std::uint64_t weight_bytes = 0;
  std::size_t transpositions = 0;
  std::optional<inspect::ProbeAnswer> check;          ///< What TensorRT says of the model after.
  std::string not_checked;                            ///< Why it was not asked; empty where it was.
  ValueCheck values;                                  ///< Whether the model after computes what `original` computes.
  std::string values_not_compared;                    ///< Why that was not tried; empty where it was.
  bool uses_plugins = true;                           ///< False: no plugin is wanted in the engine.
  std::vector<std::string> targets;                   ///< For which it was checked; empty where none was named.
  std::vector<std::string> targets_of_plugins;        ///< As Inspection::targets_of_plugins.
  std::optional<std::size_t> nodes_without_function;  ///< Where functions were left out: of how many nodes.
  std::filesystem::path output;                       ///< Once it is written.
  std::optional<std::filesystem::path> data_file;     ///< Beside the output, with its weights.
  Seconds seconds;

  /// Whether TensorRT runs the model after; nothing where that is not known. One that was asked runs what it built.
  [[nodiscard]] std::optional<bool> runs() const;
  /// Whether the comparison of values found no difference; also where it was not made, or compared nothing.
  [[nodiscard]] bool are_values_kept() const;
  /// Whether every rule was done, the values are kept, and the model runs as far as is known.
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] bool are_rules_done() const;
};

/// Reads and rewrites a network, and does not check the result. Throws Error as `read` and `convert` do.
[[nodiscard]] Conversion convert_file(const ConvertRequest& request);

/// Checks the result of a conversion: compares its values with those of the original, and at the same time builds it
/// with the TensorRT that is installed, for suggested sizes where the options have none.
class ResultCheck {
 public:
  /// Starts the process of TensorRT, which loads while the network is rewritten. Without `probe` TensorRT is not asked.
  /// Throws as `start_tensorrt` does, but for NoTensorRT.
  ResultCheck(const ConvertOptions& options, std::optional<inspect::ProbeOptions> probe);

  /// Fills in ValueCheck and `check` of a conversion, and corrects the verdicts on its nodes. May be called once.
  /// Throws as `probe` does.
  void run(Conversion& conversion, const Watch& watch, const TrialCallback& on_end = {});
  /// Does the same within a call of the toolkit that `watch` belongs to.
  void run(Work& work, Conversion& conversion, const Watch& watch, const TrialCallback& on_end = {});

 private:
  ConvertOptions options_;
  std::optional<inspect::ProbeOptions> probe_;
  std::unique_ptr<inspect::DriverTrials> trials_;
};

/// Writes the model, whole or not at all.
void write(Conversion& conversion, const std::filesystem::path& output);

/// Throws Error quoting `option` for a name that no pass has.
void check_pass_name(const std::string& name, std::string_view option);

}  // namespace graft::toolkit
