// Improves the weights, places int8 with calibrated scales (int8_scales.hpp), judges the result (int8_judge.hpp), and
// searches for the layers to keep in f32 if the result is not good enough.
#include "quant/search/choose_int8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "quant/plan/node_patterns.hpp"
#include "quant/plan/typed.hpp"
#include "quant/search/int8_judge.hpp"
#include "quant/search/int8_scales.hpp"

namespace graft::quant {
namespace {

/// The number of samples that measure the loss of each single layer in int8, and that are used to choose f16, bf16 or
/// f32 for the nodes that are not int8.
constexpr std::int64_t sensitivity_samples = 8;
/// The number of samples from which SmoothQuant measures the largest values of channels. More samples change them
/// little.
constexpr std::int64_t samples_to_smooth = 128;
/// The number of samples for bias correction. Means change little after 16 to 32 samples, and the tensors between two
/// layers are stored for all of these samples.
constexpr std::int64_t samples_to_correct = 32;

/// A quantized model that the search evaluated, with the layers that it keeps in f32.
struct Candidate {
  KeptLayers kept;
  Int8Plan plan;
  Int8Model placed;
  Judgment judgment;
  std::vector<Rounded> rounded;
  std::vector<CorrectedBias> corrected;
  std::size_t trial = 0;  ///< The index in ChosenInt8::trials.
};

class Int8Chooser {
 public:
  Int8Chooser(const runtime::Engine& engine, const onnx::Model& model, const CalibrationData& data,
              const Int8Options& options)
      : engine_(engine),
        data_(data),
        options_(options),
        prepared_(prepare_for_int8(model, options.type)),
        scaling_(prepared_, options),
        judge_(engine, prepared_, data, options) {}

  ChosenInt8 run() {
    if (data_.count == 0 && !options_.cache)
      throw Error("the calibration data contain no samples; provide at least one");
    refuse_what_is_of_int8();
    if (data_.count == 0 && (options_.improve.bias || options_.improve.round || options_.improve.smooth)) {
      throw Error(fmt::format("{}: smooth, round and bias need calibration data\nProvide the data with {}",
                              setting_name(Setting::improve), setting_name(Setting::data)));
    }
    keep_what_was_asked_for();
    judge_.measure_f32();  // Called before calibration, which takes minutes, so that a failing metric is noticed first.
    improve_weights();
    if (options_.cache) {
      scaling_.read_cache();
    } else {
      result_.samples = scaling_.calibrate(engine_, data_, asked_, result_.notes);
    }
    judge_.run_reference();
    result_.judged = static_cast<std::int64_t>(judge_.samples());
    result_.metric_outputs = judge_.metric_outputs();
    result_.metric_f32 = judge_.metric_f32();
    Candidate chosen = make(asked_);
    result_.plain = chosen.judgment.outputs;
    result_.met = judge_.is_good_enough(chosen.judgment);
    if (!result_.met) chosen = search(std::move(chosen));
    if (options_.rest) narrow_the_rest(chosen);
    finish(std::move(chosen));
    return std::move(result_);
  }

 private:
  void refuse_what_is_of_int8() const {
    if (options_.type == EightBits::int8) return;
    const auto refuse = [](Setting setting, const char* why) {
      throw Error(fmt::format("{}: {}, but the steps of f8 differ in size; quantize to int8, or leave out this setting",
                              setting_name(setting), why));
    };
    if (options_.cache) refuse(Setting::cache, "a calibration cache of TensorRT contains scales of int8");
    if (options_.improve.round) refuse(Setting::improve, "round moves weights by whole steps of int8");
    if (options_.thresholds().method == ThresholdMethod::entropy) {
      refuse(Setting::calibration, "entropy counts 128 steps of int8");
    }
  }

  void keep_what_was_asked_for() {
    const Int8Plan plan = plan_with_all_but({});
    std::set<std::string, std::less<>> layers;
    for (const Int8Node& node : plan.nodes) {
      if (node.has_weight()) layers.insert(node.node.id);
    }
    asked_ = kept_by_patterns(prepared_, options_.keep, options_.only,
                              [&](const onnx::Node& node) { return layers.contains(key_of(node)); });
  }

  [[nodiscard]] Int8Plan plan_with_all_but(const KeptLayers& kept) const {
    return plan_int8(prepared_, {.type = options_.type, .kept = kept});
  }

  [[nodiscard]] Int8Model placed_by(const Int8Plan& plan) const {
    return place_int8(prepared_, plan, scaling_.scales_of(plan));
  }

  // ---- Weights and biases

  [[nodiscard]] ObserveOptions observing(const std::string& what, std::int64_t samples) const {
    ObserveOptions options;
    options.samples = samples;
    options.threads = options_.threads;
    options.progress = [this, what](std::int64_t done, std::int64_t total) {
      options_.report_progress(what, static_cast<std::size_t>(done), static_cast<std::size_t>(total));
    };
    return options;
  }

  void improve_weights() {
    if (options_.cache && (options_.improve.equalize || options_.improve.smooth)) {
      throw Error(
          fmt::format("{0}: equalize and smooth change the ranges that {1} contains\nRemove equalize and smooth from "
                      "{0}, or remove {1}",
                      setting_name(Setting::improve), setting_name(Setting::cache)));
    }
    if (options_.improve.smooth) {
      SmoothOptions options;
      options.convolutions = true;
      options.observe = observing("measuring the inputs of layers", samples_to_smooth);
      result_.smoothed = smooth_quant(engine_, prepared_, data_, options);
    }
    if (options_.improve.equalize) result_.equalized = equalize_across_layers(prepared_);
  }

  /// Returns the model with the layers `kept` in f32 and all others quantized, rounded and bias-corrected as the
  /// options say, together with the accuracy of its outputs.
  [[nodiscard]] Candidate make(const KeptLayers& kept) {
    Candidate made{.kept = kept,
                   .plan = scaling_.plan_with(kept),
                   .placed = {},
                   .judgment = {},
                   .rounded = {},
                   .corrected = {},
                   .trial = 0};
    made.placed = placed_by(made.plan);
    if (options_.improve.round) {
      RoundOptions options;
      options.observe = observing("rounding weights up or down", samples_to_correct);
      made.rounded = adaround(engine_, made.placed.model, prepared_, data_, options);
    }
    if (options_.improve.bias) {
      made.corrected = correct_bias(engine_, made.placed.model, prepared_, data_,
                                    observing("correcting biases", samples_to_correct));
    }
    made.judgment = judge_.judge(made.placed.model);
    note_trial(made);
    made.trial = result_.trials.empty() ? 0 : result_.trials.size() - 1;
    return made;
  }

  void note_trial(const Candidate& made) {
    if (judge_.samples() == 0) return;
    result_.trials.push_back({.kept = made.kept.size() - asked_.size(),
                              .snr_db = made.judgment.snr_db(),
                              .metric = made.judgment.metric,
                              .cost = cost_of(prepared_, made.plan)});
  }

  // ---- Search

  /// Quantizes each layer alone, with all others in f32, and stores its accuracy in `result_.sensitivities`, sorted
  /// with the least accurate first.
  void find_sensitivities(const KeptLayers& kept) {
    const Int8Plan plan = scaling_.plan_with(kept);
    std::vector<const Int8Node*> layers;
    for (const Int8Node& node : plan.nodes) {
      if (node.has_weight() && node.kind == Int8Kind::computes) layers.push_back(&node);
    }
    const auto samples = std::min<std::size_t>(judge_.samples(), sensitivity_samples);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      options_.report_progress("judging each layer alone", i, layers.size());
      KeptLayers others = kept;
      for (const Int8Node* other : layers) {
        if (other != layers[i]) others.emplace(other->node.id, "");
      }
      const double snr_db =
          verify::score_of(judge_.outputs_of(placed_by(scaling_.plan_with(others)).model, samples)).snr_db;
      result_.sensitivities.push_back({layers[i]->node, snr_db});
    }
    std::stable_sort(result_.sensitivities.begin(), result_.sensitivities.end(),
                     [](const Sensitivity& a, const Sensitivity& b) { return a.snr_db < b.snr_db; });
  }

  [[nodiscard]] KeptLayers with_worst(const KeptLayers& kept, std::size_t count) const {
    KeptLayers more = kept;
    for (std::size_t i = 0; i < count; ++i) {
      const Sensitivity& layer = result_.sensitivities[i];
      more.emplace(layer.node.id, fmt::format("with only this layer in {}, the SNR of the outputs is {:.1f} dB",
                                              to_string(options_.type), layer.snr_db));
    }
    return more;
  }

  /// Returns the model with the fewest layers in f32 that meets the limits; `first` is the model without additional f32
  /// layers. If no model meets them, returns the most accurate one that still has an int8 node.
  [[nodiscard]] Candidate search(Candidate first) {
    find_sensitivities(asked_);
    const std::size_t layers = result_.sensitivities.size();
    Candidate best = std::move(first);
    std::optional<Candidate> good;
    // The number of the worst layers that must be kept in f32 is more than `few` and at most `enough`.
    std::size_t few = 0;
    std::size_t enough = layers + 1;
    while (few + 1 < enough && few < layers) {
      const std::size_t count = enough > layers ? std::clamp<std::size_t>(2 * few, 1, layers) : (few + enough) / 2;
      Candidate found = make(with_worst(asked_, count));
      if (judge_.is_good_enough(found.judgment)) {
        enough = count;
        good = std::move(found);
        continue;
      }
      few = count;
      if (count < layers && judge_.is_better(found.judgment, best.judgment)) best = std::move(found);
    }
    if (!good) return best;
    result_.met = true;
    // Kept layers are changed back to int8 if the limits are still met, starting with the layer that loses least.
    constexpr std::size_t most_tried = 16;
    for (std::size_t i = 0; i + 1 < enough && i < most_tried; ++i) {
      KeptLayers fewer = good->kept;
      fewer.erase(result_.sensitivities[enough - 2 - i].node.id);
      Candidate found = make(fewer);
      if (judge_.is_good_enough(found.judgment)) good = std::move(found);
    }
    return std::move(*good);
  }

  /// Converts the nodes of `chosen` that are not int8, and not fused into the kernel of an int8 node, to f16 or bf16,
  /// unless the outputs then miss the limits.
  void narrow_the_rest(Candidate& chosen) {
    constexpr double well_below = 6;
    ChooseOptions options;
    options.precision = *options_.rest;
    options.narrow_before_int8 = true;
    options.refusal = options_.refusal;
    options.threads = options_.threads;
    options.progress = options_.progress;
    for (const Int8Node& node : chosen.plan.nodes) {
      if (node.kind != Int8Kind::kept && node.kind != Int8Kind::none)
        options.kept.emplace(node.node.id, fmt::format("it is {}", to_string(options_.type)));
    }
    if (data_.count != 0) {
      const std::int64_t runs = std::min(data_.count, sensitivity_samples);
      for (std::int64_t run = 0; run < runs; ++run) options.data.push_back(data_.sample(run * data_.count / runs));
      // A small difference moves single elements by a whole int8 step, so the limit is at most slightly above the ratio
      // that int8 itself reaches.
      options.limit_db = std::min(limit_of(*options_.rest), chosen.judgment.snr_db() + well_below);
    }
    ChosenTypes types = choose_types(engine_, chosen.placed.model, options);
    Judgment judgment = judge_.judge(types.typed.model);
    if (result_.met && !judge_.is_good_enough(judgment)) {
      std::string note = fmt::format(
          "the nodes that are not in {} stay in f32: with these nodes in {}, an output misses the required "
          "signal-to-noise ratio or metric",
          to_string(options_.type), to_string(*options_.rest));
      if (options_.limit_db) note += fmt::format("; a lower {} accepts more error", setting_name(Setting::limit_db));
      result_.notes.push_back(std::move(note));
      return;
    }
    chosen.placed.model = std::move(types.typed.model);
    chosen.judgment = std::move(judgment);
    result_.rest = std::move(types);
    result_.rest_precision = *options_.rest;
  }

  void finish(Candidate chosen) {
    result_.plan = std::move(chosen.plan);
    result_.placed = std::move(chosen.placed);
    result_.outputs = std::move(chosen.judgment.outputs);
    result_.metric_int8 = chosen.judgment.metric;
    result_.rounded = std::move(chosen.rounded);
    result_.corrected = std::move(chosen.corrected);
    result_.written_trial = chosen.trial;
    result_.tensors = scaling_.describe_tensors(result_.plan);
    KeptLayers everything;
    for (const Int8Node& node : result_.plan.nodes) everything.emplace(node.node.id, "");
    result_.f32_cost = cost_of(prepared_, plan_with_all_but(everything));
    if (auto note = note_on_f64(prepared_, to_string(options_.type))) result_.notes.push_back(std::move(*note));
    remember_scales();
  }

  void remember_scales() {
    if (result_.tensors.empty()) {
      result_.notes.push_back(fmt::format("no tensor became {}", to_string(options_.type)));
      return;
    }
    if (options_.type == EightBits::f8) return;  // A cache stores steps of int8, so f8 has no cache.
    if (options_.cache) {
      result_.cache = *options_.cache;
    } else {
      result_.cache.version = newest_cache_version;
      const bool largest = options_.thresholds().method == ThresholdMethod::minmax;
      result_.cache.algorithm = largest ? "MinMaxCalibration" : "EntropyCalibration2";
      for (const QuantizedTensor& tensor : result_.tensors)
        result_.cache.entries.push_back({tensor.name, tensor.scale});
    }
    result_.placed.model.metadata[std::string(cache_note)] = format_calibration_cache(result_.cache);
  }

  const runtime::Engine& engine_;
  const CalibrationData& data_;
  const Int8Options& options_;
  onnx::Model prepared_;
  Int8Scaling scaling_;
  Int8Judge judge_;
  KeptLayers asked_;
  ChosenInt8 result_;
};

report::NodeRole role_of(Int8Kind kind) {
  switch (kind) {
    case Int8Kind::computes: return report::NodeRole::computes;
    case Int8Kind::moves: return report::NodeRole::moves;
    case Int8Kind::follows: return report::NodeRole::fused;
    case Int8Kind::kept: return report::NodeRole::kept;
    case Int8Kind::none: break;
  }
  return report::NodeRole::none;
}

/// Returns, as a clause for the report, how a node uses int8 or f8, or why it does not.
std::string explanation(const Int8Node& node, EightBits eight_bits) {
  const std::string_view type = to_string(eight_bits);
  switch (node.kind) {
    case Int8Kind::computes: return node.reason.empty() ? fmt::format("computes from {}", type) : node.reason;
    case Int8Kind::moves: return fmt::format("passes {} on", type);
    case Int8Kind::follows:
      return fmt::format("computes on the sums of the {} node before it, before they are rounded", type) +
             (node.reason.empty() ? "" : "; " + node.reason);
    case Int8Kind::kept: return node.reason;
    case Int8Kind::none: break;
  }
  return "it computes nothing in f32";
}

/// Returns whether a node that is not int8 computes in f16 or bf16 (Int8Options::rest) instead of f32.
bool is_in_the_rest(const ChosenInt8& chosen, const Int8Node& node) {
  return chosen.rest && node.kind == Int8Kind::kept &&
         std::any_of(chosen.rest->nodes.begin(), chosen.rest->nodes.end(), [&](const ChosenNode& other) {
           return other.node.node.id == node.node.id && other.node.type == NodeType::narrow;
         });
}

}  // namespace

ThresholdOptions Int8Options::thresholds() const {
  ThresholdOptions thresholds;
  thresholds.method = calibration.value_or(percentile ? ThresholdMethod::percentile : usual_method(type));
  if (percentile) thresholds.percentile = *percentile;
  return thresholds;
}

std::vector<QuantizedNode> ChosenInt8::reported_nodes() const {
  std::vector<QuantizedNode> reported;
  for (const Int8Node& node : plan.nodes) {
    const std::string_view type =
        is_in_the_rest(*this, node) ? to_string(rest_precision) : to_string(node.kind, plan.type);
    QuantizedNode& made = reported.emplace_back(QuantizedNode{.node = node.node,
                                                              .role = role_of(node.kind),
                                                              .type = std::string(type),
                                                              .explanation = explanation(node, plan.type)});
    if (node.kind == Int8Kind::kept) made.why = node.by_form ? report::WhyKept::form : report::WhyKept::kept;
  }
  return reported;
}

ChosenInt8 choose_int8(const runtime::Engine& engine, const onnx::Model& model, const CalibrationData& data,
                       const Int8Options& options) {
  return Int8Chooser(engine, model, data, options).run();
}

}  // namespace graft::quant
