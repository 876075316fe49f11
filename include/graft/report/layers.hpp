// The report of `verify --layers`: where two models begin to differ.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/comparison.hpp"
#include "graft/report/field.hpp"
#include "graft/report/verify.hpp"

namespace graft::report {

/// How it is known that two tensors correspond.
enum class MatchedBy : std::uint8_t {
  input,      ///< Both are the same input.
  output,     ///< Both are the same output, under different names.
  name,       ///< Both have the same name.
  origin,     ///< The rewrite that created one tensor recorded that it replaces the other.
  structure,  ///< Both are computed by the same operator from corresponding tensors.
  values,     ///< Both have the same elements, possibly in another order.
};

/// Returns the name: "input", "output", "name", "origin", "structure" or "values".
[[nodiscard]] inline std::string_view to_string(MatchedBy how) {
  switch (how) {
    case MatchedBy::input: return "input";
    case MatchedBy::output: return "output";
    case MatchedBy::name: return "name";
    case MatchedBy::origin: return "origin";
    case MatchedBy::structure: return "structure";
    case MatchedBy::values: return "values";
  }
  return "";
}

/// The range of a tensor's elements, and their sums.
struct TensorRange {
  std::int64_t count = 0;  ///< Number of elements.
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t zeros = 0;
  std::optional<double> lowest = {};
  std::optional<double> highest = {};
  double sum = 0;      ///< The sum of the finite elements.
  double squares = 0;  ///< The sum of the squares of the finite elements.

  /// Returns the largest absolute value of the finite elements, or 0.
  [[nodiscard]] double largest() const {
    return lowest && highest ? std::max(std::abs(*lowest), std::abs(*highest)) : 0;
  }
  /// Combines this range with the range of the same tensor in another run: adds the counts and the sums, and extends
  /// `lowest` and `highest`.
  void add(const TensorRange& other) {
    count += other.count;
    nan += other.nan;
    infinite += other.infinite;
    zeros += other.zeros;
    if (other.lowest) lowest = std::min(lowest.value_or(*other.lowest), *other.lowest);
    if (other.highest) highest = std::max(highest.value_or(*other.highest), *other.highest);
    sum += other.sum;
    squares += other.squares;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("lowest", &TensorRange::lowest, "The lowest finite element; None if no element is finite."),
        field("highest", &TensorRange::highest, "The highest finite element; None if no element is finite."),
        field("nan", &TensorRange::nan, "The number of elements that are NaN."),
        field("infinite", &TensorRange::infinite, "The number of infinite elements."),
        field("zeros", &TensorRange::zeros, "The number of elements that are 0."),
    };
  }
};

/// The effect of rounding a tensor's elements to a type, without any other error.
struct RoundingEffect {
  std::int64_t overflow = 0;
  std::int64_t saturated = 0;
  std::int64_t underflow = 0;
  std::int64_t subnormal = 0;
  std::optional<double> snr_db = {};

  /// Adds the counts of another run and keeps the lower signal-to-noise ratio.
  void add(const RoundingEffect& other) {
    overflow += other.overflow;
    saturated += other.saturated;
    underflow += other.underflow;
    subnormal += other.subnormal;
    if (other.snr_db) snr_db = std::min(snr_db.value_or(*other.snr_db), *other.snr_db);
  }

  static constexpr auto fields() {
    return std::tuple{
        field("overflow", &RoundingEffect::overflow, "The number of finite elements that become infinite."),
        field("saturated", &RoundingEffect::saturated,
              "The number of elements that become the largest or smallest value of int8."),
        field("underflow", &RoundingEffect::underflow, "The number of elements that are not 0 and become 0."),
        field("subnormal", &RoundingEffect::subnormal,
              "The number of elements that are so small that they lose digits, but do not become 0."),
        field("snr_db", &RoundingEffect::snr_db,
              "The signal to noise ratio in dB of the rounded values; None where rounding changes nothing."),
    };
  }
};

/// A constant with elements that become infinite in a narrower type.
struct LargeConstant {
  std::string name;
  NodeRef node;
  double largest = 0;
  std::int64_t overflow = 0;
  std::int64_t elements = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &LargeConstant::name, "The name of the constant."),
        field("node", &LargeConstant::node, "A node that reads the constant."),
        field("largest", &LargeConstant::largest, "The largest absolute value of its elements."),
        field("overflow", &LargeConstant::overflow, "The number of elements that become infinite."),
        field("elements", &LargeConstant::elements, "The number of elements."),
    };
  }
};

/// The distribution of |reference - candidate| divided by the largest finite |reference|.
struct ErrorHistogram {
  /// The names of the bins. "not finite" counts elements that are NaN or infinite in one tensor only, or infinite with
  /// different signs.
  static constexpr std::array names{"0",     "<1e-7", "<1e-6", "<1e-5", "<1e-4",     "<1e-3",
                                    "<1e-2", "<1e-1", "<1",    ">=1",   "not finite"};
  std::array<std::int64_t, names.size()> counts{};

  static constexpr auto fields() {
    constexpr auto list = []<std::size_t... bins>(std::index_sequence<bins...> /*bins*/) {
      return std::tuple{field(nullptr, names[bins], &ErrorHistogram::count<bins>,
                              "The number of elements whose error is in this range.")...};
    };
    return list(std::make_index_sequence<names.size()>());
  }

 private:
  template <std::size_t bin>
  [[nodiscard]] std::int64_t count() const {
    return counts[bin];
  }
};

/// The error of a tensor as noise that is added to the reference. Both tensors have the same number of elements.
struct ErrorFigures {
  /// 10 log10(sum of squares of the reference / sum of squares of the error) over elements that are finite in both
  /// tensors; empty if the error or the reference is 0, or if a difference exceeds double.
  std::optional<double> snr_db = {};
  double root_mean_square = 0;
  ErrorHistogram histogram = {};

  static constexpr auto fields() {
    return std::tuple{
        field("snr_db", &ErrorFigures::snr_db, "The signal to noise ratio in dB; None where nothing differs."),
        field("root_mean_square_error", &ErrorFigures::root_mean_square,
              "The root mean square of the differences of the finite elements."),
        field(nullptr, "error_histogram", &ErrorFigures::histogram,
              "The number of elements by the difference divided by the largest finite element of the reference."),
    };
  }
};

/// How the candidate reordered the elements of the reference.
struct Rearrangement {
  enum class Kind : std::uint8_t {
    reshaped,    ///< The dimensions differ, but the elements have the same order.
    transposed,  ///< The axes are permuted, together with their dimensions.
    flattened,   ///< The elements were flattened with another order of the axes: NHWC instead of NCHW.
    channels,    ///< Three or four channels are permuted: BGR instead of RGB.
    flipped,     ///< The tensor is mirrored along an axis.
    shifted,     ///< The tensor is rotated along an axis.
    reordered,   ///< The slices of an axis are permuted.
    shuffled,    ///< The elements are the same, in an order that none of the other kinds explains.
  };
  Kind kind = Kind::reshaped;
  /// The description for messages, such as "transposed by [0, 2, 3, 1]: NHWC in the candidate, NCHW in the reference".
  std::string text;
  std::vector<std::int64_t> dims;  ///< First step: the reference is reshaped to these dimensions.
  /// The second step of `transposed` and `flattened`: the axes are permuted into this order.
  std::vector<std::int64_t> axes;
  std::int64_t axis = 0;  ///< Second step, for the other kinds: the slices of this axis are permuted.
  /// The permutation of the slices along `axis`: candidate slice i is slice order[i] of the reference. Empty if the
  /// kind permutes no slices.
  std::vector<std::int64_t> order;
  std::vector<std::int64_t> final_dims;  ///< Last step: the result is reshaped to these dimensions.

  /// Returns whether `dims`, `axes`, `order` and `final_dims` describe the reordering, so that it can be applied to
  /// other tensors.
  [[nodiscard]] bool is_known() const { return kind != Kind::shuffled; }
};

/// Returns a description of the kind, such as "transposed" or "flattened in another order".
[[nodiscard]] inline std::string_view to_string(Rearrangement::Kind kind) {
  switch (kind) {
    case Rearrangement::Kind::reshaped: return "reshaped";
    case Rearrangement::Kind::transposed: return "transposed";
    case Rearrangement::Kind::flattened: return "flattened in another order";
    case Rearrangement::Kind::channels: return "channels swapped";
    case Rearrangement::Kind::flipped: return "mirrored";
    case Rearrangement::Kind::shifted: return "rotated";
    case Rearrangement::Kind::reordered: return "slices in another order";
    case Rearrangement::Kind::shuffled: return "the same numbers in another order";
  }
  return "";
}

/// A tensor of the reference and the corresponding tensor of the candidate, over all runs.
struct ComparedLayer {
  TensorRef reference;  ///< The tensor in the reference, with its type in the worst run.
  TensorRef candidate;
  MatchedBy matched_by = MatchedBy::name;
  std::string op;
  NodeRef reference_node;
  NodeRef candidate_node;
  std::vector<NodeRef> reference_nodes;
  std::vector<NodeRef> candidate_nodes;
  bool is_output = false;
  Tolerance tolerance;
  Difference difference;  ///< The difference in the worst run.
  std::optional<NoiseFloor> floor;
  bool is_worst_lost = false;  ///< Whether the worst run is one of the lost runs. See ComparedOutput.
  ErrorFigures error;
  TensorRange reference_range;
  TensorRange candidate_range;
  std::optional<Rearrangement> layout;  ///< Set if the candidate has the reference's elements in another order.
  std::string diagnosis;
  std::size_t worst_run = 0;
  std::size_t failed_runs = 0;
  /// The number of runs in which the tensor agrees only because of an unreliable noise floor. See
  /// ComparedOutput::lost_runs.
  std::size_t lost_runs = 0;
  std::string not_compared;
  bool is_random = false;  ///< Whether the tensor was not compared because its elements are random.
  std::optional<RoundingEffect> rounding;
  std::optional<double> snr_lost_db;
  std::optional<Difference> local;
  std::int64_t compared = 0;
  bool is_declared_empty = false;  ///< Whether the reference declares a dimension of size 0. See ComparedOutput.

  [[nodiscard]] bool equal() const { return failed_runs == 0; }
  [[nodiscard]] bool is_always_empty() const { return is_declared_empty && difference.count == 0; }
  [[nodiscard]] bool is_lost_in_noise() const { return equal() && is_worst_lost; }
  /// Returns the verdict on the tensor. Verdict::nothing_compared occurs only for outputs.
  [[nodiscard]] Verdict verdict() const {
    if (!equal()) return Verdict::different;
    const bool is_vacuous = is_output && not_compared.empty() && compared == 0 && !is_always_empty();
    return is_vacuous || (is_output && (is_random || is_lost_in_noise())) ? Verdict::nothing_compared : Verdict::same;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("reference", &ComparedLayer::reference, "The tensor of the reference."),
        field("candidate", &ComparedLayer::candidate, "The tensor of the candidate."),
        field("matched_by", &ComparedLayer::matched_by,
              "The reason why the tensors correspond: 'input', 'output', 'name', 'origin' (a rewrite recorded it), "
              "'structure' (the same operator computes them from corresponding tensors) or 'values'."),
        field("op", &ComparedLayer::op, "The operator of the candidate's node that computes the tensor."),
        field("reference_node", &ComparedLayer::reference_node, "The node of the reference that computes the tensor."),
        field("candidate_node", &ComparedLayer::candidate_node, "The node of the candidate that computes the tensor."),
        field("reference_nodes", &ComparedLayer::reference_nodes,
              "The nodes of the reference between this tensor and earlier tensors that both models have; the last one "
              "computes the tensor. There are several if a rewrite merged or split nodes."),
        field("candidate_nodes", &ComparedLayer::candidate_nodes, "The corresponding nodes of the candidate."),
        field("is_output", &ComparedLayer::is_output, "Whether the tensor is an output of at least one of the models."),
        field(nullptr, "reference_type", &ComparedLayer::reference_type,
              "The type and shape of the tensor of the reference in the worst run."),
        field(nullptr, "candidate_type", &ComparedLayer::candidate_type,
              "The type and shape of the tensor of the candidate in the worst run."),
        field("verdict", nullptr, &ComparedLayer::verdict, "'same', 'different' or 'nothing compared'."),
        field(nullptr, "equal", &ComparedLayer::is_same, "Whether the verdict is 'same'."),
        field("compared", &ComparedLayer::compared, "The number of finite elements in all runs."),
        field("failed_runs", &ComparedLayer::failed_runs, "The number of runs with elements outside the tolerance."),
        field("worst_run", &ComparedLayer::worst_run, "The index of the run with the largest difference."),
        field("tolerance", &ComparedLayer::tolerance, "The differences that were allowed."),
        inlined(&ComparedLayer::difference),
        field("noise_floor", &ComparedLayer::floor,
              "The noise floor; None if it was not measured, mostly because the tolerance was sufficient or was "
              "given."),
        inlined(&ComparedLayer::error),
        field("reference_range", &ComparedLayer::reference_range,
              "The range of the values of the reference in the worst run."),
        field("candidate_range", &ComparedLayer::candidate_range,
              "The range of the values of the candidate in the worst run."),
        field("layout", &ComparedLayer::layout_text,
              "The way in which the candidate reordered the elements of the reference, for example 'transposed'; None "
              "if the order is the same."),
        field("diagnosis", &ComparedLayer::diagnosis, "The cause of the difference, if it was recognized."),
        field("not_compared", &ComparedLayer::not_compared,
              "The reason why the tensor was not compared: its values are random, or a model does not run if this "
              "tensor is returned. Empty if it was compared."),
        field("rounding", &ComparedLayer::rounding,
              "The effect of the emulated type alone on the values of the reference; None without emulation."),
        field("snr_lost_db", &ComparedLayer::snr_lost_db,
              "The decibels by which the signal to noise ratio is lower than the lowest of the inputs of this tensor; "
              "None if an input has no ratio."),
        field("local", &ComparedLayer::local,
              "The difference that remains if the candidate's node reads the inputs of the reference; None if it was "
              "not measured, because another tensor is the first divergence or because this tensor agrees."),
    };
  }

 private:
  [[nodiscard]] bool is_same() const { return verdict() == Verdict::same; }
  [[nodiscard]] const std::string& reference_type() const { return reference.type; }
  [[nodiscard]] const std::string& candidate_type() const { return candidate.type; }
  [[nodiscard]] std::optional<std::string> layout_text() const {
    return layout ? std::optional(std::string(to_string(layout->kind))) : std::nullopt;
  }
};

/// The first tensor, in the order of computation, that the candidate computes wrongly from correct inputs.
struct Divergence {
  std::size_t layer = 0;
  std::string reference;
  std::string candidate;
  std::string op;
  NodeRef reference_node;
  NodeRef candidate_node;
  std::vector<NodeRef> reference_nodes;
  std::vector<NodeRef> candidate_nodes;
  std::optional<Rearrangement::Kind> order = {};
  std::string why;
  std::optional<std::vector<std::string>> differences = {};

  static constexpr auto fields() {
    return std::tuple{
        field("tensor", "layer", &Divergence::layer, "The index of the tensor in the list of compared tensors."),
        field(nullptr, "reference", &Divergence::reference, "The name of the tensor in the reference."),
        field(nullptr, "candidate", &Divergence::candidate, "The name of the tensor in the candidate."),
        field("op", &Divergence::op, "The operator of the candidate's node that computes the tensor."),
        field("reference_node", &Divergence::reference_node, "The node of the reference that computes the tensor."),
        field("candidate_node", &Divergence::candidate_node, "The node of the candidate that computes the tensor."),
        field("reference_nodes", nullptr, &Divergence::reference_nodes,
              "The nodes of the reference between this tensor and earlier tensors that both models have; the last one "
              "computes the tensor."),
        field("candidate_nodes", &Divergence::candidate_nodes,
              "The nodes of the candidate between this tensor and earlier tensors that both models have; the last one "
              "computes the tensor."),
        field("layout", &Divergence::order_text,
              "The way in which the candidate reordered the elements, if only their order is wrong; None otherwise."),
        field("why", &Divergence::why, "The difference, for example '1.01 times the reference'."),
        field("differences", &Divergence::differences,
              "The differences between the nodes: operator, attributes, constants. None where a rewrite created other "
              "nodes or a type is emulated."),
    };
  }

 private:
  [[nodiscard]] std::optional<std::string> order_text() const {
    return order ? std::optional(std::string(to_string(*order))) : std::nullopt;
  }
};

/// The error of a candidate that does not run.
struct Failure {
  std::optional<NodeRef> node = {};
  std::vector<NodeRef> nodes;
  std::string message;

  static constexpr auto fields() {
    return std::tuple{
        field("node", nullptr, &Failure::node,
              "The first node with which the candidate does not run; None where none was found."),
        field(nullptr, "node", &Failure::node_name,
              "The first node with which the candidate does not run; empty where none was found."),
        field("nodes", &Failure::nodes, "The nodes of the smallest part that fails."),
        field("message", &Failure::message, "The error of that part, or of the whole model if no part fails."),
    };
  }

 private:
  [[nodiscard]] std::string node_name() const { return node ? node->name : std::string(); }
};

/// The files of the smallest part of both models that shows the first divergence or the failure.
struct ReducedFiles {
  std::string candidate;
  std::string reference;
  std::string inputs;
  std::string command;

  /// Returns the names of the files that exist.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const std::string& name : {candidate, reference, inputs}) {
      if (!name.empty()) names.push_back(name);
    }
    return names;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("candidate", &ReducedFiles::candidate, "The ONNX file of the part of the candidate."),
        field("reference", &ReducedFiles::reference,
              "The ONNX file of the corresponding part of the reference; empty if the candidate does not run."),
        field("inputs", &ReducedFiles::inputs, "The .npz file of the inputs of both parts; empty if they have none."),
        field("command", &ReducedFiles::command, "The command that shows the result with these files."),
    };
  }
};

/// The comparison of all corresponding tensors of two models.
struct LayersReport : ComparedModels {
  std::vector<ComparedLayer> layers;
  /// The index of the layer that lowers the signal-to-noise ratio most, if it lowers it by more than 6 dB.
  std::optional<std::size_t> weakest;
  std::optional<Failure> failure;
  std::optional<Divergence> first;
  std::optional<std::size_t> nan_begins;
  std::vector<LargeConstant> large_constants;
  std::size_t reference_tensors = 0;
  std::size_t candidate_tensors = 0;
  std::optional<ReducedFiles> reduced_files = {};
  std::optional<std::string> emulated = {};

  /// Returns whether all outputs agree. Internal tensors may differ.
  [[nodiscard]] bool equal() const {
    return !dispute && runs > 0 && problems.empty() && !failure &&
           std::none_of(layers.begin(), layers.end(),
                        [](const ComparedLayer& layer) { return layer.is_output && !layer.equal(); });
  }
  /// Returns whether there is no output, or nothing was compared of at least one output. Other outputs may differ.
  [[nodiscard]] bool nothing_compared() const {
    const auto is_output = [](const ComparedLayer& layer) { return layer.is_output; };
    return runs > 0 && (std::none_of(layers.begin(), layers.end(), is_output) ||
                        std::any_of(layers.begin(), layers.end(), [](const ComparedLayer& layer) {
                          return layer.verdict() == Verdict::nothing_compared;
                        }));
  }
  /// Returns the verdict on the outputs. Internal tensors may differ even if the verdict is `same`.
  [[nodiscard]] Verdict verdict() const {
    if (dispute) return Verdict::disputed;
    if (!equal()) return Verdict::different;
    return nothing_compared() ? Verdict::nothing_compared : Verdict::same;
  }
  /// Returns the first layer that differs, in the order of `layers`, or null if none differs. The difference may
  /// originate in an earlier node.
  [[nodiscard]] const ComparedLayer* first_different() const {
    const auto found =
        std::find_if(layers.begin(), layers.end(), [](const ComparedLayer& layer) { return !layer.equal(); });
    return found == layers.end() ? nullptr : &*found;
  }

  static constexpr Schema schema{"graft.verify.layers", 2,
                                 "Each tensor that both models have, and where they begin to differ.", true};
  static constexpr auto fields() {
    constexpr std::tuple verdicts{
        field("verdict", nullptr, &LayersReport::verdict,
              "The verdict on the outputs: 'same', 'different', 'nothing compared' or 'disputed'. Internal tensors may "
              "differ where it is 'same'."),
        field(nullptr, "equal", &LayersReport::is_same, "Whether the verdict on the outputs is 'same'."),
        field("nothing_compared", &LayersReport::nothing_compared,
              "Whether no element of at least one output was compared; other outputs may differ."),
    };
    constexpr std::tuple problem_list{
        field("problems", &LayersReport::problems, "Inputs or outputs that one model lacks."),
    };
    constexpr std::tuple tensors{
        field("reference_tensors", &LayersReport::reference_tensors,
              "The number of tensors that the reference computes. Those that are not compared lie between the compared "
              "ones."),
        field("candidate_tensors", &LayersReport::candidate_tensors,
              "The number of tensors that the candidate computes."),
        field(nullptr, "first_divergence", &LayersReport::first,
              "The first divergence; null where no tensor is worse than the tensors from which it is computed."),
        field("nan_begins", nullptr, &LayersReport::nan_begins,
              "The index of the first tensor with NaN that is computed from tensors without NaN."),
        field(nullptr, "nan_begins", &LayersReport::nan_begins_name,
              "The candidate's name of the first tensor with NaN that is computed from tensors without NaN."),
        field("weakest", nullptr, &LayersReport::weakest,
              "The index of the tensor that loses the most signal; None if none loses more than half of it (6 dB)."),
        field(nullptr, "weakest", &LayersReport::weakest_name,
              "The candidate's name of the tensor that loses the most signal; null if none loses more than half of it "
              "(6 dB)."),
        field("failure", &LayersReport::failure, "Set where the candidate does not run; nothing is compared then."),
        field("large_constants", &LayersReport::large_constants,
              "Constants of the candidate beyond the range of the emulated type."),
        field("tensors", "layers", &LayersReport::layers,
              "The compared tensors, in the candidate's order of computation."),
    };
    constexpr std::tuple options{
        field(nullptr, "reduced", &LayersReport::reduced_files,
              "The files of the nodes where the models first differ; null if none were written."),
        field("emulated", &LayersReport::emulated,
              "The type in which the candidate was emulated: 'f16', 'bf16' or 'int8'; None without emulation."),
    };
    return std::tuple_cat(verdicts, run_fields(), problem_list, engine_fields(), tensors, file_fields(),
                          synthetic_input_fields(), kernel_fields(), options);
  }

 private:
  [[nodiscard]] bool is_same() const { return verdict() == Verdict::same; }
  [[nodiscard]] std::optional<std::string> name_of(const std::optional<std::size_t>& index) const {
    return index ? std::optional(layers.at(*index).candidate.name) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> nan_begins_name() const { return name_of(nan_begins); }
  [[nodiscard]] std::optional<std::string> weakest_name() const { return name_of(weakest); }
};

}  // namespace graft::report
