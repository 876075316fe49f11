// The comparison of two tensors: the figures that all reports on values show.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/field.hpp"

namespace graft::report {

/// The result of a comparison of two tensors or two models.
enum class Verdict : std::uint8_t {
  same,
  different,
  nothing_compared,  ///< No output element was finite in both models, or the outputs are random, so nothing is proven.
  disputed,          ///< The CPU engines disagree on one of the models, so there is no verdict on the models.
};

/// Returns "same", "different", "nothing compared" or "disputed".
[[nodiscard]] inline std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "same";
    case Verdict::different: return "different";
    case Verdict::nothing_compared: return "nothing compared";
    case Verdict::disputed: return "disputed";
  }
  return "";
}

/// Returns the verdict on a tensor: "same", "differs", "nothing compared" or "disputed".
[[nodiscard]] inline std::string tensor_verdict_text(Verdict verdict) {
  return verdict == Verdict::different ? "differs" : to_string(verdict);
}

/// Returns the verdict on two models: "the same", "not the same", "not compared" or "disputed".
[[nodiscard]] inline std::string model_verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "the same";
    case Verdict::different: return "not the same";
    case Verdict::nothing_compared: return "not compared";
    case Verdict::disputed: return "disputed";
  }
  return "";
}

/// The differences that a comparison allows. An element agrees if |reference - candidate| <= absolute + relative *
/// |reference| + of_largest * L: rounding in a sum scales with its largest terms, not with its result. L is the largest
/// finite |reference| of the tensor. With `by_slice`, L is the smallest of the maxima of the slices that contain the
/// element, one slice along each axis: boxes of 640 pixels must not relax the tolerance of the scores next to them.
/// Slices of fewer than 16 elements do not count, and L is at least 2^-23 of the largest of the tensor.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double of_largest = 0;
  bool by_slice = false;
  std::optional<double> snr_db = {};
  std::optional<double> least_snr_db = {};
  std::string why = {};
  /// Whether `absolute` is the step of integers that result from rounding. Rounding moves single elements in either
  /// direction, so the comparison fails if most elements are off in the same direction.
  bool is_step = false;

  static constexpr auto fields() {
    return std::tuple{
        field("relative", &Tolerance::relative, "The allowed difference as a share of the element of the reference."),
        field("absolute", &Tolerance::absolute, "The allowed difference of every element."),
        field("of_largest", &Tolerance::of_largest,
              "The allowed difference as a share of the largest element of the reference."),
        field("by_slice", &Tolerance::by_slice,
              "Whether `of_largest` refers to the largest element of the slices that contain an element, and not of "
              "the whole tensor."),
        field("snr_db", &Tolerance::snr_db,
              "Replaces the other limits by one for all elements together: the minimum of 10 log10(sum of squares of "
              "the reference / sum of squares of the error). NaN and infinities must agree nevertheless."),
        field("least_snr_db", &Tolerance::least_snr_db,
              "An additional limit for all elements together: the minimum of the same ratio in dB, or, if that is "
              "less, the ratio of the reference to its noise floor, multiplied by the factor of the noise floor."),
        field(
            "why", &Tolerance::why,
            "The reason why the tolerance differs from the tolerance of the tensor's own type; empty if it does not."),
    };
  }
};

/// The comparison of two tensors along an axis whose size depends on rounding, for example because elements are
/// selected by a threshold. The order of the elements along this axis is ignored. The integers of one position on the
/// axis are compared together, such as the row and the column that NonZero returns; real numbers are compared
/// separately for each slice of the other axes.
struct SelectionDifference {
  std::size_t axis = 0;
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  std::int64_t without_partner = 0;
  std::int64_t between_draws = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("axis", &SelectionDifference::axis, "The axis whose size depends on rounding."),
        field("lowest", &SelectionDifference::lowest,
              "The smallest size of the reference when its arithmetic rounds differently."),
        field("highest", &SelectionDifference::highest, "The largest of these sizes."),
        field("without_partner", &SelectionDifference::without_partner,
              "The number of elements for which the other tensor has no element within the tolerance."),
        field("without_partner_between_draws", &SelectionDifference::between_draws,
              "The largest number of such elements between the reference and itself when it rounds differently."),
    };
  }
};

/// The result of comparing two tensors.
struct Difference {
  std::int64_t count = 0;
  std::int64_t finite = 0;  ///< Number of elements that are finite in both tensors.
  std::int64_t mismatched = 0;
  std::int64_t within_noise = 0;
  /// Number of elements within the noise floor that show neither that the tensors are the same nor that they differ.
  /// Rounding alone changes such an element of the reference between finite and NaN or infinite. The candidate's
  /// element either differs by more than the finite deviations explain, or is NaN or infinite in one tensor only.
  std::int64_t undecided = 0;
  std::int64_t nan_disagreements = 0;       ///< Number of mismatches that are NaN in one tensor only.
  std::int64_t infinity_disagreements = 0;  ///< Number of mismatches that are infinite in one tensor only.
  std::int64_t nan_agreements = 0;  ///< Number of elements that are NaN in both tensors; they are not mismatches.
  double max_absolute = 0;  ///< Largest |reference - candidate| of the elements that are finite in both tensors.
  double max_relative = 0;  ///< Largest |reference - candidate| / |reference|, for reference != 0.
  std::vector<std::int64_t> max_absolute_at;
  std::vector<std::int64_t> max_relative_at;
  double excess = 0;
  /// Signal-to-noise ratio of the finite elements; empty if there is no difference or no signal, or if a difference
  /// exceeds double.
  std::optional<double> snr_db;
  /// The ratio in dB that Tolerance::least_snr_db and the noise floor require, if the tensor does not reach it;
  /// otherwise empty.
  std::optional<double> missed_snr_db;
  std::optional<double> cosine;
  std::vector<std::int64_t> first_index;
  double first_reference = 0;
  double first_candidate = 0;
  /// The first mismatch as text with all digits, reference first, if both tensors contain integers; double cannot
  /// represent all integers beyond 2^53.
  std::optional<std::pair<std::string, std::string>> first_integers;
  std::optional<SelectionDifference> selection;
  /// Whether the elements are identifiers, such as indices or classes, whose numeric difference means nothing: they are
  /// either equal or different.
  bool is_choice = false;
  /// Whether the elements count as different because most of them are off in the same direction (Tolerance::is_step).
  bool is_shifted = false;
  std::string incomparable;

  [[nodiscard]] bool equal() const { return mismatched == 0 && incomparable.empty(); }
  /// Returns max_absolute; NaN or infinity if an element is NaN or infinite in one tensor only.
  [[nodiscard]] double worst_absolute() const {
    if (nan_disagreements != 0) return std::numeric_limits<double>::quiet_NaN();
    return infinity_disagreements != 0 ? std::numeric_limits<double>::infinity() : max_absolute;
  }
  /// Returns max_relative; NaN or infinity if an element is NaN or infinite in one tensor only.
  [[nodiscard]] double worst_relative() const {
    const double worst = worst_absolute();
    return std::isfinite(worst) ? max_relative : worst;
  }

  static constexpr auto fields() {
    return std::tuple{
        field("elements", &Difference::count, "The number of elements that were compared."),
        field("mismatched", &Difference::mismatched,
              "The number of elements outside the tolerance, including elements that are NaN or infinite in one tensor "
              "only and not undecided."),
        field("within_noise", &Difference::within_noise,
              "The number of elements outside the tolerance but within the noise floor; they are not mismatches."),
        field("undecided", &Difference::undecided,
              "The number of elements of within_noise that rounding alone makes NaN or infinite in the reference, or "
              "finite instead, and that differ more than it explains otherwise, or are NaN or infinite in one tensor "
              "only: they show neither that the tensors are the same nor that they differ."),
        field("largest_absolute", "max_absolute", &Difference::worst_absolute,
              "The largest absolute difference; infinite or NaN if only one of the two elements is infinite or NaN."),
        field("largest_absolute_at", "max_absolute_at", &Difference::max_absolute_at,
              "The index of the element with the largest absolute difference; empty if nothing differs."),
        field("largest_relative", "max_relative", &Difference::worst_relative,
              "The largest difference divided by the element of the reference; infinite or NaN if only one of the two "
              "elements is infinite or NaN."),
        field("largest_relative_at", "max_relative_at", &Difference::max_relative_at,
              "The index of the element with the largest relative difference; empty if nothing differs."),
        field("excess", &Difference::excess,
              "The largest difference divided by the allowed difference; at most 1 if all elements agree."),
        field("cosine", &Difference::cosine,
              "The cosine of the angle between both tensors as vectors; None if one is 0 or not finite."),
        field("nan_disagreements", &Difference::nan_disagreements,
              "The number of elements that are NaN in one tensor only and not undecided."),
        field(
            "infinity_disagreements", &Difference::infinity_disagreements,
            "The number of elements that are infinite in one tensor, and finite or of the other sign in the other, and "
            "not undecided."),
        field("first_index", &Difference::first_index, "The index of the first mismatch; empty without one."),
        field("selection", &Difference::selection,
              "The comparison without order, if the dimensions depend on rounding; None otherwise."),
        field("incomparable", &Difference::incomparable,
              "The reason why nothing could be compared, for example different dimensions; mostly empty."),
    };
  }
};

/// The errors of one output of a model in a narrower type, compared with f32.
struct OutputFigures {
  std::string name;
  std::optional<double> snr_db;
  double largest_error = 0;
  std::int64_t elements = 0;
  std::int64_t differing = 0;
  std::int64_t not_finite = 0;
  std::int64_t rows = 0;
  std::int64_t same_top = 0;
  bool is_real = false;  ///< Whether the elements are real numbers, as opposed to integers or booleans.
  std::string incomparable;
  std::string judged_by;

  long double signal = 0;  ///< The signal: the sum of the squares of the finite elements of the output in f32.
  long double noise = 0;   ///< The noise: the sum of the squared errors of these elements.

  [[nodiscard]] bool is_not_real() const { return !is_real; }

  static constexpr auto fields() {
    return std::tuple{
        field("name", &OutputFigures::name, "The name of the output."),
        field(nullptr, "elements", &OutputFigures::elements, "The number of elements that were compared."),
        field(
            nullptr, "incomparable", &OutputFigures::incomparable,
            "For example 'dimensions differ: [3, 4] in f32, [3, 3] here', from the first run in which they differ, or "
            "that the output is not judged because it depends on random numbers; mostly empty."),
        field(
            nullptr, "judged_by", &OutputFigures::judged_by,
            "The tensor to which the figures belong, if it is not the output: the outputs of a detector are judged by "
            "the worst input of the suppression, because rounding changes the order of detections; mostly empty."),
        field_if(&OutputFigures::is_not_real, nullptr, "differing", &OutputFigures::differing,
                 "The number of integers or booleans that differ."),
        field_if(&OutputFigures::is_real, "snr_db", "snr_db", &OutputFigures::snr_db,
                 "The signal to noise ratio in dB; None without a difference or without a signal."),
        field_if(&OutputFigures::is_real, "largest_error", "largest_error", &OutputFigures::largest_error,
                 "The largest |f32 - result| where both are finite."),
        field_if(&OutputFigures::is_real, nullptr, "not_finite", &OutputFigures::not_finite,
                 "The number of elements that are NaN or infinite in the result but finite in f32."),
        field_if(&OutputFigures::is_real, "rows", "rows", &OutputFigures::rows,
                 "The number of rows of scores; 0 for outputs that are not recognized as the scores of a classifier."),
        field_if(&OutputFigures::is_real, "same_top", "same_top", &OutputFigures::same_top,
                 "The number of rows whose largest element is at the same position as in f32."),
    };
  }
};

/// The noise floor of a tensor: how much the reference differs from itself if its arithmetic is rounded differently. A
/// difference within `factor` times the floor does not count as an error.
struct NoiseFloor {
  double largest = 0;
  double share = 0;
  double factor = 0;
  std::size_t runs = 0;
  bool has_other_dims = false;
  bool has_unlimited = false;
  bool says_little = false;
  /// Whether the tensors are equal only because of an unreliable floor that no second engine confirmed.
  bool needs_confirmation = false;
  /// Why a second engine did not confirm the floor; empty if no engine tried or if it did.
  std::string why_unconfirmed;
  std::string text;  ///< The description of the floor, as a clause of a sentence.

  static constexpr auto fields() {
    return std::tuple{
        field("largest", &NoiseFloor::largest, "The largest finite deviation of an element of the reference."),
        field("share_of_largest", &NoiseFloor::share,
              "That deviation as a share of the largest element of the reference."),
        field("factor", &NoiseFloor::factor, "The multiple of the deviation by which the candidate may differ."),
        field("runs", &NoiseFloor::runs, "The number of runs of the reference that measured the floor."),
        field("other_dimensions", &NoiseFloor::has_other_dims,
              "Whether dimensions depend on rounding, such as the number of boxes above a threshold."),
        field("unlimited", &NoiseFloor::has_unlimited,
              "Whether an element became NaN, infinite or another integer in a run."),
        field("says_little", &NoiseFloor::says_little, "Whether the floor is large enough to hide a real difference."),
    };
  }
};

/// A model for which two CPU engines return results, from the same inputs, that are further apart than rounding
/// explains.
struct Dispute {
  std::string model;
  std::string first;
  std::string second;
  std::string output;
  std::optional<NodeRef> node;
  std::string tensor;
  std::string difference;
  /// A description of the fault that one of the two engines is known to have in this node or, if the node is unknown,
  /// in this model; empty if no fault is known.
  std::string known_fault = {};

  [[nodiscard]] std::optional<std::string> operator_name() const {
    return node ? std::optional(node->op) : std::nullopt;
  }
  /// Returns the message: "OpenVINO 2026.4.1 and ONNX Runtime 1.31.1 disagree on model.onnx, first at node 'tanh'
  /// (Tanh), tensor 't': ...".
  [[nodiscard]] std::string text() const {
    const std::string where =
        node ? "first at " + describe(*node) + ", tensor '" + tensor + "'" : "output '" + output + "'";
    return first + " and " + second + " disagree on " + model + ", " + where + ": " + difference +
           (known_fault.empty() ? "" : "\nThe model has " + known_fault);
  }

  static constexpr auto fields() {
    return std::tuple{
        field("model", &Dispute::model, "The file of the model."),
        field("first_engine", &Dispute::first, "The first engine, such as 'OpenVINO 2026.4.1'."),
        field("second_engine", &Dispute::second, "The other engine, such as 'ONNX Runtime 1.31.1'."),
        field("output", &Dispute::output, "The output of the model that differs."),
        field("node", &Dispute::node,
              "The first node whose result differs when both engines read the same inputs; None if the difference "
              "cannot be attributed to a single node."),
        field("operator", &Dispute::operator_name, "The operator of that node."),
        field("tensor", &Dispute::tensor, "The output of that node."),
        field("difference", &Dispute::difference, "The difference between the results of both engines."),
    };
  }
};

}  // namespace graft::report
