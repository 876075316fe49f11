// A conversion with all its details, for programs that show them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/report/model.hpp"
#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/import.hpp"
#include "inspect/probe_verdicts.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/count_nodes.hpp"
#include "onnx/model.hpp"
#include "passes/report.hpp"
#include "toolkit/inspect.hpp"
#include "toolkit/value_check.hpp"

namespace graft::toolkit {

struct ConvertRequest {
  std::filesystem::path file;
  ImportOptions import = {};
  ConvertOptions options = {};
  /// The name of ImportOptions::shapes in messages.
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
  ImportOptions import = {};    ///< The options with which the file was read, without the watch.
  ConvertOptions options = {};  ///< The options of the conversion, without the watch.
  report::Origin origin;
  graft::onnx::Model original;  ///< The model before the conversion.
  graft::onnx::Model model;     ///< The model after the conversion.
  /// The result with its functions, which is run to compare values; empty if `model` has the functions.
  std::optional<graft::onnx::Model> with_functions;
  std::optional<inspect::Release> release;  ///< The target release; nothing where none was named.
  bool is_proven = true;                    ///< False: rewrites were applied without proofs.
  report::ConvertReport report;
  std::vector<report::NodeSupport> failed_before;  ///< The nodes of `original` that TensorRT does not run.
  std::vector<report::NodeSupport> nodes;          ///< The verdicts on the nodes of `model`.
  onnx::NodeCounts nodes_before;
  onnx::NodeCounts nodes_after;
  std::uint64_t weight_bytes = 0;
  std::size_t transpositions = 0;
  std::optional<report::ProbeSummary> check;          ///< The runs of TensorRT on `model`, where it was run.
  std::string not_checked;                            ///< Why TensorRT was not run; empty where it was.
  ValueCheck values;                                  ///< Whether `model` computes the values of `original`.
  std::string values_not_compared;                    ///< Why no values were compared; empty where they were.
  bool uses_plugins = true;                           ///< False: the engine shall have no plugins.
  std::optional<inspect::ProbeOptions> probe;         ///< How TensorRT was to be run; nothing where it was not.
  std::vector<std::string> targets_of_plugins;        ///< See InspectReport::targets_of_plugins.
  std::optional<std::size_t> nodes_without_function;  ///< Number of nodes whose functions were left out.
  std::filesystem::path output;                       ///< The file of `model`; empty before `write`.
  std::optional<std::filesystem::path> data_file;     ///< The file with the weights, next to `output`, if any.
  Seconds seconds;

  /// Whether TensorRT was not run, so that rules gave all verdicts.
  [[nodiscard]] bool is_judged_by_rules() const { return !check; }
  /// Whether TensorRT runs `model`; nothing where that is not known. Where TensorRT was run, it has to have built the
  /// model.
  [[nodiscard]] std::optional<bool> runs() const;
  /// Whether the comparison of values found no difference; true also where no values were compared.
  [[nodiscard]] bool are_values_kept() const;
  /// Whether every rule was applied, the values are kept, and TensorRT is known to run the model.
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] bool are_rules_done() const;
};

/// The check of the result of a conversion. It compares the values of the result with the values of the original, and
/// at the same time builds the result with the installed TensorRT, for suggested sizes where the options have none.
class ResultCheck {
 public:
  /// Starts the process of TensorRT, which loads while the network is rewritten. Without `probe` TensorRT is not run.
  /// Throws the errors of `start_tensorrt` except NoTensorRT.
  ResultCheck(const ConvertOptions& options, std::optional<inspect::ProbeOptions> probe);

  /// Throws Error for ranges of sizes that the inputs of the model cannot have.
  void check_ranges(const graft::onnx::Model& model) const;
  /// Checks the model before its conversion in the same way, unless rules may still change it. Throws the errors of
  /// check_types, too; where TensorRT is not run, the errors of check_types_and_outputs.
  void check_ranges_before(const graft::onnx::Model& model) const;

  /// Sets `values` and `check` of a conversion, and corrects the verdicts on its nodes. May be called once. Throws the
  /// errors of `probe`.
  void run(Conversion& conversion, const Watch& watch, const TrialCallback& on_end = {});
  /// Does the same as part of a call of the toolkit, to which `work` and `watch` belong.
  void run(Work& work, Conversion& conversion, const Watch& watch, const TrialCallback& on_end = {});

 private:
  ConvertOptions options_;
  std::optional<inspect::ProbeOptions> probe_;
  std::unique_ptr<inspect::DriverTrials> trials_;
  CancelToken stop_tensorrt_;  ///< Cancelled if the comparison throws.
};

/// Reads and rewrites a network; `check`, which has the same options, checks its ranges of sizes before that, and not
/// the result. Throws the errors of `read`, `convert` and ResultCheck::check_ranges.
[[nodiscard]] Conversion convert_file(const ConvertRequest& request, const ResultCheck& check);

/// Writes the model completely or not at all, and sets `output` and `data_file`.
void write(Conversion& conversion, const std::filesystem::path& output);

/// Throws Error quoting `option` for an unknown name of a pass.
void check_pass_name(const std::string& name, std::string_view option);

}  // namespace graft::toolkit
