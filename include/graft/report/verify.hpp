// The report of `verify`: whether two models compute the same outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/comparison.hpp"
#include "graft/report/field.hpp"

namespace graft::report {

/// The range of the values of a synthetic input.
struct InputRange {
  double lowest = 0;
  double highest = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple{
        field("lowest", &InputRange::lowest, "The lowest value of the input."),
        field("highest", &InputRange::highest, "The highest value of the input."),
        field("why", &InputRange::why,
              "The reason for the range, for example \"node 'scale' (Div) divides it by 255\"; empty if the caller set "
              "the range."),
    };
  }
};

/// The ranges of synthetic inputs, by the names of the inputs.
using InputRanges = std::map<std::string, InputRange, std::less<>>;

/// An output of the reference, and the corresponding output of the candidate, over all runs.
struct ComparedOutput {
  TensorRef reference;  ///< The output in the reference, with its type in the worst run.
  /// The output in the candidate. Its name differs from the reference's if outputs were paired by order.
  TensorRef candidate;
  Tolerance tolerance;
  Difference worst;       ///< The difference in the run that exceeds the limit most, or that comes closest to it.
  OutputFigures figures;  ///< The error figures over all runs together.
  /// The noise floor of the first failed run, or of the worst run if none failed. Empty if it was not measured, mostly
  /// because the tolerance was sufficient or was set by the caller.
  std::optional<NoiseFloor> floor;
  /// A ratio that shows whether a difference within the tolerance is more than rounding: the largest difference in the
  /// worst run, divided by the largest change that rounding alone causes in the reference in that run (f64 is rounded
  /// as f32). Set only if the output is the same by its tolerance alone and the ratio exceeds the factor of noise
  /// floors. Empty if it was not measured, for example because the caller set a tolerance or the largest difference is
  /// at most 1 % of the tolerance.
  std::optional<double> beyond_rounding = {};
  std::size_t worst_run = 0;
  std::size_t failed_runs = 0;
  std::size_t lost_runs = 0;   ///< Number of runs that are equal only because of an unreliable noise floor.
  bool is_worst_lost = false;  ///< Whether the worst run is one of the lost runs.
  std::string note;
  std::string not_compared;
  std::int64_t compared = 0;
  bool is_declared_empty = false;  ///< Whether the reference declares a dimension of size 0.

  [[nodiscard]] bool equal() const { return failed_runs == 0; }
  /// Returns whether the reference declares a dimension of 0 and no element was compared. The declaration alone is not
  /// sufficient: engines also run a model whose tensor has another size.
  [[nodiscard]] bool is_always_empty() const { return is_declared_empty && worst.count == 0; }
  /// Returns whether the output was empty in all runs. Returns false for outputs that were not compared, such as random
  /// numbers.
  [[nodiscard]] bool is_empty_in_all_runs() const {
    return not_compared.empty() && equal() && worst.count == 0 && figures.elements == 0;
  }
  [[nodiscard]] bool is_lost_in_noise() const { return equal() && is_worst_lost; }
  [[nodiscard]] Verdict verdict() const {
    if (!equal()) return Verdict::different;
    return (compared == 0 && !is_always_empty()) || is_lost_in_noise() ? Verdict::nothing_compared : Verdict::same;
  }
  [[nodiscard]] bool is_same() const { return verdict() == Verdict::same; }
  [[nodiscard]] std::string verdict_text() const { return tensor_verdict_text(verdict()); }
  /// Returns the note on the output or, if nothing was compared, the reason.
  [[nodiscard]] std::string full_note() const { return not_compared.empty() ? note : "not compared: " + not_compared; }

  static constexpr auto fields() {
    return std::tuple{
        field("reference", nullptr, &ComparedOutput::reference, "The output of the reference."),
        field("candidate", nullptr, &ComparedOutput::candidate, "The output of the candidate."),
        field(nullptr, "reference_name", &ComparedOutput::reference_name, "The name of the output of the reference."),
        field(nullptr, "candidate_name", &ComparedOutput::candidate_name, "The name of the output of the candidate."),
        field(nullptr, "reference_type", &ComparedOutput::reference_type,
              "The type and shape of the output of the reference in the worst run."),
        field(nullptr, "candidate_type", &ComparedOutput::candidate_type,
              "The type and shape of the output of the candidate in the worst run."),
        field("verdict", nullptr, &ComparedOutput::verdict, "'same', 'different' or 'nothing compared'."),
        field(nullptr, "equal", &ComparedOutput::is_same, "Whether the verdict is 'same'."),
        field(nullptr, "verdict", &ComparedOutput::verdict_text, "'same', 'differs' or 'nothing compared'."),
        field("failed_runs", &ComparedOutput::failed_runs, "The number of runs with elements outside the tolerance."),
        field("worst_run", &ComparedOutput::worst_run, "The index of the run with the largest difference."),
        field("tolerance", &ComparedOutput::tolerance, "The differences that were allowed."),
        field("compared", &ComparedOutput::compared, "The number of finite elements in all runs."),
        field("not_compared", &ComparedOutput::not_compared,
              "The reason why only type and rank were compared: the values are random. Mostly empty."),
        inlined(&ComparedOutput::worst),
        field("snr_db", &ComparedOutput::snr_db,
              "The signal to noise ratio of all runs in dB; None where nothing differs."),
        field("largest_error", &ComparedOutput::largest_error,
              "The largest absolute difference between finite elements in all runs."),
        field("rows", &ComparedOutput::rows,
              "The number of rows of scores in all runs; 0 for outputs that are not recognized as the scores of a "
              "classifier."),
        field("same_top", &ComparedOutput::same_top,
              "The number of rows whose largest element is at the same position in both models."),
        field("noise_floor", &ComparedOutput::floor,
              "The noise floor of the first run with elements outside the tolerance, or else of the worst run; None if "
              "it was not measured, mostly because the tolerance was sufficient or was set by the caller."),
        field(
            "beyond_rounding", &ComparedOutput::beyond_rounding,
            "The largest difference of the worst run divided by the largest change that rounding alone, with f64 "
            "rounded "
            "as f32, causes in the reference in that run; infinite if rounding changes nothing. Set if the models are "
            "the "
            "same and the quotient is more than 4: the difference may have another cause than rounding. None "
            "otherwise, or if it was not measured: for a difference of at most 1 % of the tolerance, for types other "
            "than f32 and f64, and where the tolerance is set by the caller, allows for a narrower type, or needed a "
            "noise floor, "
            "or rounding alone changes the output by more than 1 % or to NaN or infinity."),
        field("note", nullptr, &ComparedOutput::full_note,
              "The transposition that maps one layout to the other, or why the outputs were not compared; mostly "
              "empty."),
        field(nullptr, "note", &ComparedOutput::note,
              "The transposition that maps one layout to the other, or in which model the tensor is not an output; "
              "mostly empty."),
    };
  }

 private:
  [[nodiscard]] const std::string& reference_name() const { return reference.name; }
  [[nodiscard]] const std::string& candidate_name() const { return candidate.name; }
  [[nodiscard]] const std::string& reference_type() const { return reference.type; }
  [[nodiscard]] const std::string& candidate_type() const { return candidate.type; }
  [[nodiscard]] std::optional<double> snr_db() const { return figures.snr_db; }
  [[nodiscard]] double largest_error() const { return figures.largest_error; }
  [[nodiscard]] std::int64_t rows() const { return figures.rows; }
  [[nodiscard]] std::int64_t same_top() const { return figures.same_top; }
};

/// An operator of a loaded library that computes nodes of the reference. No engine has the operator, so both models
/// compute these nodes with the library's own definition, and the comparison does not show whether it is right.
struct OwnDefinition {
  std::string op;
  std::string library = {};
  std::size_t nodes = 0;
  bool has_function = false;  ///< Whether the function computes the nodes; otherwise the CPU kernel does.
  std::size_t nodes_compared = 0;
  /// The comparison of the function with the CPU kernel: the two are written separately, so an error in one of them is
  /// found.
  Verdict kernel = Verdict::nothing_compared;
  std::string note = {};

  [[nodiscard]] std::string kernel_text() const { return model_verdict_text(kernel); }

  static constexpr auto fields() {
    return std::tuple{
        field("operator", &OwnDefinition::op, "The name of the operator."),
        field("library", &OwnDefinition::library, "The file name of the library that has the operator."),
        field("nodes", &OwnDefinition::nodes, "The number of nodes of the reference that the operator computes."),
        field("has_function", &OwnDefinition::has_function,
              "Whether the operator's ONNX function computes the nodes; otherwise its CPU kernel does."),
        field("nodes_compared", &OwnDefinition::nodes_compared,
              "The number of nodes at which the function was compared with the CPU kernel."),
        field("kernel", &OwnDefinition::kernel_text,
              "Whether the function and the CPU kernel compute 'the same' or 'not the same'; 'not compared' if they "
              "were not run."),
        field("note", &OwnDefinition::note,
              "The first node at which function and kernel differ, or why they were not compared; mostly empty."),
    };
  }
};

/// The two models of a comparison, their inputs, and the CPU engines that ran them.
struct ComparedModels {
  std::string reference_file;
  std::string candidate_file;
  std::vector<std::string> problems;  ///< The inputs and outputs that do not correspond.
  std::vector<std::string> inputs;
  bool has_data = false;  ///< Whether the caller supplied the inputs.
  std::vector<std::string> data_notes = {};
  InputRanges ranges;
  std::set<std::string, std::less<>> large_integers = {};
  std::string why_sizes;
  std::size_t runs = 0;
  /// A sentence for each difference that no run could show, such as weights that differ although the outputs agree, or
  /// a branch of If that no run executed. Set only if the outputs are compared.
  std::vector<std::string> unreached = {};
  /// The dispute between two engines. If it is set, there is no verdict: no output was compared, and layers show the
  /// results of one engine only.
  std::optional<Dispute> dispute = {};
  std::string ran_in = {};
  std::vector<std::string> left_out = {};
  bool is_quantized_candidate = false;  ///< Whether the candidate is quantized and the reference is not.
  std::vector<std::string> without_own_kernels = {};
  std::vector<OwnDefinition> own_definitions = {};

  [[nodiscard]] std::string dispute_text() const { return dispute ? dispute->text() : std::string(); }

  // The fields, in groups that several reports share.
 protected:
  static constexpr auto file_fields() {
    return std::tuple{
        field(nullptr, "reference", &ComparedModels::reference_file, "The file of the reference."),
        field(nullptr, "candidate", &ComparedModels::candidate_file, "The file of the candidate."),
    };
  }
  static constexpr auto run_fields() {
    return std::tuple{
        field("runs", &ComparedModels::runs, "The number of runs of both models."),
        field("inputs", &ComparedModels::inputs,
              "The inputs with type and shape in the first run: 'image: f32[2, 1, 8, 8]'."),
        field("data_notes", &ComparedModels::data_notes,
              "How the arrays of the data were converted, and arrays that were not used; mostly empty."),
    };
  }
  static constexpr auto synthetic_input_fields() {
    return std::tuple{
        field(nullptr, "ranges", &ComparedModels::ranges, "The ranges of synthetic inputs, by name."),
        field("large_integers", &ComparedModels::large_integers,
              "Synthetic inputs whose integers are 0 to 3 in the first run and of any size up to 2147483647 in the "
              "others."),
        field("why_sizes", &ComparedModels::why_sizes,
              "The reason for other sizes of synthetic inputs than the default, if the reference does not run with the "
              "default sizes; mostly empty."),
    };
  }
  static constexpr auto engine_fields() {
    return std::tuple{
        field("dispute", nullptr, &ComparedModels::dispute_text,
              "The engines that disagree, and the first node where they do; mostly empty."),
        field(nullptr, "dispute", &ComparedModels::dispute,
              "The model that two CPU engines compute differently; there is no verdict then."),
        field("ran_in", &ComparedModels::ran_in,
              "The CPU engines that ran the models, for example 'ONNX Runtime 1.31.1'."),
        field("left_out", &ComparedModels::left_out,
              "Why a model did not run in the first choice of engines, known wrong results of the engine that ran it, "
              "and how this engine rewrote the model; mostly empty."),
        field("unreached", &ComparedModels::unreached,
              "Differences that the inputs did not exercise where the verdict is 'same', one sentence each: weights "
              "of the same name, type and shape that differ and on which no output depends in any run, nodes with the "
              "same inputs and outputs but another operator or attribute, and branches "
              "and loop bodies that no run executed, except those inside a reported branch or body."),
    };
  }
  static constexpr auto kernel_fields() {
    return std::tuple{
        field("without_own_kernels", &ComparedModels::without_own_kernels,
              "With own kernels: ONNX operators of the candidate that were not computed by Graft's kernels, which "
              "TensorRT-RTX runs as plugins."),
        field("own_definitions", &ComparedModels::own_definitions,
              "The operators of loaded libraries that compute nodes of the reference. Both models compute these nodes "
              "with the library's definition, so the verdict supposes that the definition is right."),
    };
  }
};

/// The accuracy of a classifier in both models, by the classes that the caller gave for the samples.
struct LabelAccuracy {
  std::string output;
  std::int64_t samples = 0;
  std::int64_t reference_correct = 0;
  std::int64_t candidate_correct = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("output", &LabelAccuracy::output, "The output with the scores."),
        field("samples", &LabelAccuracy::samples, "The number of samples with a class."),
        field("reference_correct", &LabelAccuracy::reference_correct,
              "The number of samples for which the reference's largest score is that of the class."),
        field("candidate_correct", &LabelAccuracy::candidate_correct,
              "The number of samples for which the candidate's largest score is that of the class."),
    };
  }
};

/// The comparison of the outputs of two models.
struct VerifyReport : ComparedModels {
  std::vector<ComparedOutput> outputs;
  std::optional<LabelAccuracy> accuracy = {};

  [[nodiscard]] bool equal() const {
    return !dispute && runs > 0 && problems.empty() &&
           std::all_of(outputs.begin(), outputs.end(), [](const ComparedOutput& output) { return output.equal(); });
  }
  /// Returns the verdict on all outputs, the first that applies: `disputed` if the CPU engines disagree on a model;
  /// `different` if an output differs, inputs or outputs do not correspond, or nothing was run; `nothing_compared` if
  /// there are no outputs or one of them has this verdict; otherwise `same`.
  [[nodiscard]] Verdict verdict() const {
    if (dispute) return Verdict::disputed;
    if (!equal()) return Verdict::different;
    const bool lacks_one =
        outputs.empty() || std::any_of(outputs.begin(), outputs.end(), [](const ComparedOutput& output) {
          return output.verdict() == Verdict::nothing_compared;
        });
    return lacks_one ? Verdict::nothing_compared : Verdict::same;
  }
  [[nodiscard]] bool is_same() const { return verdict() == Verdict::same; }
  [[nodiscard]] std::string verdict_text() const { return model_verdict_text(verdict()); }

  static constexpr Schema schema{"graft.verify", 1, "Each output of the reference compared with that of the candidate.",
                                 true};
  static constexpr auto fields() {
    constexpr std::tuple own{
        field("verdict", nullptr, &VerifyReport::verdict,
              "'same'; 'different'; 'nothing compared': no output element was finite in both models, or the outputs "
              "are random, which proves nothing; or 'disputed': the CPU engines disagree on one of the models."),
        field(nullptr, "verdict", &VerifyReport::verdict_text,
              "'the same', 'not the same', 'not compared' or 'disputed'."),
        field("same", "equal", &VerifyReport::is_same, "Whether the verdict is 'same'."),
        field("outputs", &VerifyReport::outputs, "The outputs, in the order of the reference."),
        field("accuracy", &VerifyReport::accuracy,
              "The accuracy of both models with the classes of the samples; None without classes."),
        field("problems", &VerifyReport::problems,
              "Inputs or outputs that one model lacks or that differ in type or shape."),
    };
    return std::tuple_cat(file_fields(), own, run_fields(), synthetic_input_fields(), engine_fields(), kernel_fields());
  }
};

}  // namespace graft::report
