// The options and the report of `convert`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"
#include "graft/report/inspect.hpp"
#include "graft/report/model.hpp"
#include "graft/report/rewrites.hpp"
#include "graft/report/tensorrt.hpp"
#include "graft/report/value_check.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::report {

/// The options of a conversion.
struct ConvertOptions {
  Plugins plugins = Plugins::automatic;
  std::vector<std::string> only = {};     ///< Names of the passes to run; an empty list runs all passes.
  std::vector<std::string> without = {};  ///< Names of passes to leave out.
  /// The target release of TensorRT, one of releases(). Nodes that this release is known to compute wrongly are
  /// rewritten, and the rules for this release judge the nodes. If empty, there is no
  /// particular target release.
  std::string release = {};
  std::filesystem::path rules =
      {};  ///< A YAML file with the caller's own rewrites (the guide "Change a network with rules"), or empty.
  /// The maximum number of nodes that replace one Loop or Scan whose number of iterations is known: its body is copied
  /// for each iteration. With 0 no Loop and no Scan is replaced.
  std::int64_t unroll = default_unroll;
  /// The rounding of values that the model rounds to u8, or to i8 with a zero point other than 0.
  Quantized quantized = Quantized::exact;
  /// Whether to prove each rewrite by running it. If false, rewrites are applied without proofs and no model is run.
  bool prove = true;
  /// Whether to prove also rewrites that differ from a proven rewrite only in the values of weights.
  bool prove_each = false;
  /// Whether to write an ONNX function for each Graft node. Without functions TensorRT's parser uses the plugins; the
  /// model then needs the plugin library, and runtimes other than Graft cannot run it.
  bool functions = true;
  toolkit::CpuEngine engine = toolkit::CpuEngine::automatic;  ///< The engine that runs the proofs.
  /// Whether to check the result: its outputs are compared with those of the given model, as `verify` does, and the
  /// installed TensorRT parses and builds it, for the sizes in `inspect` or for suggested ones. If no TensorRT is
  /// installed, or `release` is set, only the rules judge the nodes. No outputs are compared if `prove` is false or
  /// `rules` is set.
  bool check = true;
  /// How the check runs TensorRT. With Judge::rule, the check does not run TensorRT. The members `convert`, `release`,
  /// `reduce` and `watch` are ignored.
  toolkit::InspectOptions inspect = {};
  /// The ONNX file to which the result is written before it is checked; if empty, no file is written.
  std::filesystem::path output = {};
  toolkit::Watch watch = {};

  /// Returns whether the check runs the installed TensorRT.
  [[nodiscard]] bool asks_tensorrt() const { return check && release.empty() && inspect.judge != Judge::rule; }
};

/// The time of each step of a conversion, in seconds.
struct ConvertSeconds {
  double read = 0;
  double rewrite = 0;
  double prove = 0;
  double compare = 0;
  double write = 0;

  static constexpr auto fields() {
    return std::tuple{field("read", &ConvertSeconds::read, "The time in which the files were read."),
                      field("rewrite", &ConvertSeconds::rewrite, "The time of the passes, without the proofs."),
                      field("prove", &ConvertSeconds::prove, "The time of the proofs."),
                      field("compare", &ConvertSeconds::compare, "The time in which the values were compared."),
                      field("write", &ConvertSeconds::write, "The time in which the result was written.")};
  }
};

/// The result of a conversion: the model, its rewrites, and the check of the model.
struct ConvertReport : RewriteReport {
  toolkit::Model original = {};  ///< The given model.
  toolkit::Model model = {};
  std::filesystem::path file = {};
  toolkit::ImportOptions import = {};  ///< The options with which the file was read, without the watch.
  ConvertOptions options = {};         ///< The options of the conversion, without watches and callbacks.
  Origin origin = {};
  std::string release = {};             ///< See InspectReport::release.
  TensorRTIdentity rules = {};          ///< See InspectReport::rules.
  std::vector<ModelPort> inputs = {};   ///< The inputs of `model`.
  std::vector<ModelPort> outputs = {};  ///< The outputs of `model`.
  NodeCounts nodes_before = {};
  NodeCounts nodes_after = {};
  NetworkCost cost_before = {};  ///< The work and the weights of `original`.
  NetworkCost cost_after = {};   ///< The work and the weights of `model`.
  std::uint64_t weight_bytes = 0;
  std::size_t transpositions = 0;
  /// The number of nodes without an ONNX function; empty if functions were written for all nodes.
  std::optional<std::size_t> nodes_without_function = {};
  std::vector<NodeSupport> failed_before = {};  ///< The nodes of `original` that TensorRT does not run.
  std::vector<NodeSupport> nodes = {};          ///< The verdicts on the nodes of `model`.
  bool can_be_cut = false;                      ///< Whether the network can be cut. See InspectReport::can_be_cut.
  /// The GPUs for which the plugin library has code; empty if it has code for all of them. See
  /// InspectReport::targets_of_plugins.
  std::vector<std::string> targets_of_plugins = {};
  /// See InspectReport::targets_without_plugins.
  std::vector<std::string> targets_without_plugins = {};
  std::optional<ProbeSummary> check = {};
  std::string not_checked = {};
  ValueCheck values = {};  ///< Whether `model` computes the same values as `original`.
  std::string values_not_compared = {};
  std::filesystem::path output = {};
  std::optional<std::filesystem::path> data_file = {};
  ConvertSeconds seconds = {};

  /// Returns the title of the requested target release, such as "TensorRT 10.13"; empty if no release was requested.
  [[nodiscard]] std::string release_title() const { return release.empty() ? "" : rules.title(); }
  [[nodiscard]] bool uses_plugins() const { return options.plugins != Plugins::never; }
  /// Returns whether the check was meant to run the installed TensorRT.
  [[nodiscard]] bool asks_tensorrt() const { return options.asks_tensorrt(); }
  /// Returns whether TensorRT was not run, so that rules gave all verdicts.
  [[nodiscard]] bool is_judged_by_rules() const { return !check; }
  /// Returns whether TensorRT runs `model`, or nothing if that is not known. If TensorRT was run, only a successful
  /// build counts.
  [[nodiscard]] std::optional<bool> runs() const {
    const std::optional<bool> by_nodes = report::runs(nodes);
    // Verdicts of the parser are sufficient, for example for a cut. Only a check with the builder requires a successful
    // build.
    const bool is_to_be_built = check && (check->judge == Judge::builder || !check->not_built.empty());
    const bool is_unknown = by_nodes.value_or(false) && is_to_be_built && !check->built;
    return is_unknown ? std::nullopt : by_nodes;
  }
  /// Returns whether the comparison of values found no difference. Also true if no values were compared.
  [[nodiscard]] bool are_values_kept() const {
    if (!values.report) return true;
    const Verdict verdict = values.report->verdict();
    return verdict == Verdict::same || verdict == Verdict::nothing_compared;
  }
  /// Returns whether every rule was applied, the values are kept, and TensorRT is known to run the model.
  [[nodiscard]] bool is_complete() const { return are_rules_done() && are_values_kept() && runs().value_or(false); }
  /// Returns the nodes of the result that do not run, and those for which it is not known whether they run.
  [[nodiscard]] std::vector<NodeSupport> problems() const {
    return nodes_that([](Support support) { return is_bad(support) || is_open(support); });
  }
  /// Returns the assumptions of the rewrites, followed by the rejected rewrites with the reasons.
  [[nodiscard]] std::vector<std::string> all_warnings() const {
    std::vector<std::string> all = warnings;
    all.insert(all.end(), rejections.begin(), rejections.end());
    return all;
  }
  /// Returns the verdict of `verify` on `original` and `model`, or nothing if they were not compared.
  [[nodiscard]] std::optional<Verdict> verified() const {
    return values.report ? std::optional(values.report->verdict()) : std::nullopt;
  }
  /// Returns why `original` and `model` were not compared; empty if they were.
  [[nodiscard]] const std::string& not_verified() const {
    return values.failure.empty() ? values_not_compared : values.failure;
  }

  static constexpr Schema schema{"graft convert", 1,
                                 "What was read, rewritten and written. Nodes are described as \"node 'name' "
                                 "(operator)\". `undone` has the rewrites whose proof failed."};
  static constexpr auto fields() {
    return std::tuple{
        field("model", nullptr, &ConvertReport::model, "The result of the conversion."),
        field(nullptr, "model", &ConvertReport::file, "The file that was read."),
        field(nullptr, "output", &ConvertReport::output, "The file that was written; empty if none was."),
        field(nullptr, "nodes_before", &ConvertReport::all_nodes_before,
              "The number of nodes of the given graph and of the bodies of its nodes, such as Loop and If, with "
              "Constant nodes."),
        field(nullptr, "nodes_after", &ConvertReport::all_nodes_after,
              "The number of nodes of the result, counted as nodes_before."),
        field("cost_before", &ConvertReport::cost_before, "The work and the weights of the given model."),
        field("cost_after", &ConvertReport::cost_after, "The work and the weights of the result."),
        field(nullptr, "weight_bytes", &ConvertReport::weight_bytes, "The bytes of the weights of the result."),
        field(nullptr, "transpositions", &ConvertReport::transpositions, "The number of Transpose nodes."),
        field(nullptr, "external_data", &ConvertReport::data_file,
              "The file with the weights next to the output, or null."),
        field(nullptr, "nodes_without_function", &ConvertReport::count_without_function,
              "The number of nodes of Graft's operators whose functions were left out."),
        field(nullptr, "origin", &ConvertReport::imported_from,
              "The network in its original format; null for an ONNX model."),
        field(nullptr, "notes", &ConvertReport::notes, "Remarks of the reader on the files."),
        field(nullptr, "inputs", &ConvertReport::inputs, "The inputs of the result."),
        field(nullptr, "outputs", &ConvertReport::outputs, "The outputs of the result."),
        field(nullptr, "seconds", &ConvertReport::seconds, "The time of each step."),
        inlined(&ConvertReport::rewriting),
        field("warnings", &ConvertReport::all_warnings,
              "Assumptions of rewrites, and the rejected rewrites with reasons."),
        field("runs", &ConvertReport::runs,
              "Whether TensorRT runs the result; None if this is unknown. If the check ran, whether TensorRT built the "
              "result."),
        field("problems", nullptr, &ConvertReport::problems,
              "The nodes of the result that do not run, or of which it is unknown whether they run."),
        field("check", nullptr, &ConvertReport::check, "The runs of TensorRT; None where the check did not run."),
        field("not_checked", nullptr, &ConvertReport::not_checked, "Why the check did not run; empty where it ran."),
        field("verified", nullptr, &ConvertReport::verified_text,
              "The verdict of graft.verify on the given model and the result, with synthetic inputs; None if the "
              "models were not compared."),
        field("not_verified", nullptr, &ConvertReport::not_verified,
              "Why the models were not compared; empty if the models were compared."),
        field(nullptr, "built", &ConvertReport::is_built, "Whether TensorRT built the result."),
        field(nullptr, "shapes", &ConvertReport::built_shapes,
              "The ranges for which TensorRT built the result, as NAME=MIN..OPT..MAX."),
        composed<std::string>("answered_by", "Who judged the result, in words."),
        field(nullptr, "values", &ConvertReport::compared_values,
              "The comparison of the values of both models; null where it was not tried."),
        field(nullptr, "values_not_compared", &ConvertReport::values_not_compared,
              "Why no values were compared; empty where the comparison was tried."),
        field(nullptr, "unsupported_before", &ConvertReport::failed_before,
              "The nodes of the given model that TensorRT does not run."),
        field(nullptr, "unsupported", &ConvertReport::failing_nodes, "The nodes of the result that do not run."),
        field(nullptr, "unknown", &ConvertReport::open_nodes,
              "The nodes of the result of which it is unknown whether they run.")};
  }

 private:
  template <class IsThat>
  [[nodiscard]] std::vector<NodeSupport> nodes_that(const IsThat& is_that) const {
    std::vector<NodeSupport> found;
    std::ranges::copy_if(nodes, std::back_inserter(found), is_that, &NodeSupport::support);
    return found;
  }
  [[nodiscard]] std::vector<NodeSupport> failing_nodes() const { return nodes_that(is_bad); }
  [[nodiscard]] std::vector<NodeSupport> open_nodes() const { return nodes_that(is_open); }
  [[nodiscard]] std::size_t all_nodes_before() const { return nodes_before.all(); }
  [[nodiscard]] std::size_t all_nodes_after() const { return nodes_after.all(); }
  [[nodiscard]] std::size_t count_without_function() const { return nodes_without_function.value_or(0); }
  [[nodiscard]] std::optional<Origin> imported_from() const { return origin.if_imported(); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return origin.notes; }
  [[nodiscard]] const RewriteReport& rewriting() const { return *this; }
  [[nodiscard]] std::optional<std::string> verified_text() const {
    return values.report ? std::optional<std::string>(to_string(values.report->verdict())) : std::nullopt;
  }
  [[nodiscard]] bool is_built() const { return check && check->built; }
  [[nodiscard]] std::vector<std::string> built_shapes() const {
    return check ? check->shapes : std::vector<std::string>();
  }
  [[nodiscard]] std::optional<ValueCheck> compared_values() const {
    return values.is_tried() ? std::optional(values) : std::nullopt;
  }
};

}  // namespace graft::report
