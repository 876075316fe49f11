// Calibrates, places and judges int8, and searches for the layers to keep in f32 if the result is not good enough.
#include "quant/search/choose_int8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "quant/calibrate/calibrate.hpp"
#include "quant/plan/node_patterns.hpp"
#include "quant/plan/typed.hpp"
#include "verify/compare/figures.hpp"

namespace graft::quant {
namespace {

/// The samples by which single layers, and the types of nodes that are not int8, are judged.
constexpr std::int64_t sensitivity_samples = 8;
/// The samples after which the largest numbers of channels are known well enough.
constexpr std::int64_t samples_to_smooth = 128;
/// Means settle after 16 to 32 samples, and the tensors between two layers are held for all of them.
constexpr std::int64_t samples_to_correct = 32;
/// The maximum number of bytes of the f32 network's outputs that are kept for comparisons.
constexpr std::size_t most_data_memory = std::size_t{1} << 30;

using Kept = std::map<std::string, std::string, std::less<>>;

/// The middle of a bin, in bins.
constexpr double middle_of_bin = 0.5;

/// Computes, from the counts, the range, the loss by rounding and the share of saturated numbers.
void judge_rounding(QuantizedTensor& tensor, const Histogram& histogram, EightBits type) {
  tensor.was_observed = true;
  tensor.lowest = histogram.figures().lowest;
  tensor.highest = histogram.figures().highest;
  const double scale = tensor.scale;
  const double largest = largest_of(type);
  // A number up to half a step beyond the largest is still rounded to the largest; the steps of f8 are 32 there.
  const double half_a_step = type == EightBits::int8 ? middle_of_bin : 16;
  const double beyond_all = (largest + half_a_step) * scale;
  double signal = 0;
  double noise = 0;
  double beyond = 0;
  const std::size_t used = histogram.used_bins();
  for (std::size_t i = 0; i < used; ++i) {
    const auto count = static_cast<double>(histogram.bins()[i]);
    const double value = (static_cast<double>(i) + middle_of_bin) * histogram.width();
    const double rounded = round_to(type, value / scale) * scale;
    signal += value * value * count;
    noise += (value - rounded) * (value - rounded) * count;
    if (value > beyond_all) beyond += count;
  }
  const double all = static_cast<double>(histogram.counted() + histogram.figures().zeros);
  if (all > 0) tensor.saturated = beyond / all;
  tensor.snr_db = verify::decibels_between(signal, noise);
}

/// Returns the distribution of a tensor from 0 to the largest calibrated size or the threshold, whichever is larger. It
/// has far fewer bins than the histogram.
report::Distribution distribution_of(const Histogram& histogram, double threshold) {
  constexpr std::size_t bins = 60;
  const std::size_t used = histogram.used_bins();
  const double end = std::max(static_cast<double>(used) * histogram.width(), threshold);
  report::Distribution distribution{
      .bin_width = end / bins, .counts = std::vector<std::uint64_t>(bins), .zeros = histogram.figures().zeros};
  for (std::size_t i = 0; i < used; ++i) {
    const double size = (static_cast<double>(i) + middle_of_bin) * histogram.width();
    distribution.counts[std::min(bins - 1, static_cast<std::size_t>(size / distribution.bin_width))] +=
        histogram.bins()[i];
  }
  return distribution;
}

double agreement_of(const std::vector<verify::OutputFigures>& outputs) {
  constexpr double whole = 100;
  std::int64_t rows = 0;
  std::int64_t same = 0;
  for (const verify::OutputFigures& output : outputs) {
    rows += output.rows;
    same += output.same_top;
  }
  return rows == 0 ? whole : whole * static_cast<double>(same) / static_cast<double>(rows);
}

struct Judgment {
  std::vector<verify::OutputFigures> outputs;
  std::optional<double> metric;
  [[nodiscard]] double snr_db() const { return verify::score_of(outputs).snr_db; }
};

/// A quantized model that was tried.
struct Candidate {
  Kept kept;
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
      : engine_(engine), data_(data), options_(options), prepared_(prepare_for_int8(model, options.type)) {}

  ChosenInt8 run() {
    if (data_.count == 0 && !options_.cache) throw Error("there are no samples for the calibration");
    refuse_what_is_of_int8();
    if (data_.count == 0 && (options_.improve.bias || options_.improve.round || options_.improve.smooth)) {
      throw Error(fmt::format("{}: smooth, round and bias need calibration data\nGive the data with {}",
                              setting_name(Setting::improve), setting_name(Setting::data)));
    }
    keep_what_was_asked_for();
    measure_f32();  // before calibration, which takes minutes: a metric that fails is noticed now
    improve_weights();
    if (options_.cache) {
      take_scales_from_cache();
    } else {
      calibrate_tensors();
    }
    run_reference();
    Candidate chosen = make(asked_);
    result_.plain = chosen.judgment.outputs;
    result_.met = is_good_enough(chosen.judgment);
    if (!result_.met) chosen = search(std::move(chosen));
    if (options_.rest) narrow_the_rest(chosen);
    finish(std::move(chosen));
    return std::move(result_);
  }

 private:
  void say(const std::string& what, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  void refuse_what_is_of_int8() const {
    if (options_.type == EightBits::int8) return;
    const auto refuse = [](Setting setting, const char* why) {
      throw Error(fmt::format("{}: {}, and the steps of f8 differ in size", setting_name(setting), why));
    };
    if (options_.cache) refuse(Setting::cache, "a calibration cache of TensorRT contains steps of int8");
    if (options_.improve.round) refuse(Setting::improve, "round moves weights by whole steps of int8");
    if (options_.thresholds.method == ThresholdMethod::entropy) {
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

  [[nodiscard]] Int8Plan plan_with_all_but(const Kept& kept) const {
    return plan_int8(prepared_, {.type = options_.type, .kept = kept});
  }

  // ---- Scales

  /// Returns the tensors that are rounded and, if layers may be kept in f32, those that are rounded then. Fewer tensors
  /// leave the engine's fusions as they are.
  [[nodiscard]] std::vector<std::string> tensors_to_calibrate() const {
    const Int8Plan plan = plan_with_all_but(asked_);
    if (options_.limit_db || options_.max_drop) return plan.candidates;
    std::vector<std::string> tensors;
    for (const auto& [name, group] : plan.tensors) tensors.push_back(name);
    return tensors;
  }

  void calibrate_tensors() {
    const std::vector<std::string> tensors = tensors_to_calibrate();
    CalibrateOptions options;
    options.threads = options_.threads;
    options.state = options_.state;
    options.progress = [&](std::int64_t done, std::int64_t total) {
      say("calibrating", static_cast<std::size_t>(done), static_cast<std::size_t>(total));
    };
    Calibration calibration = calibrate(engine_, prepared_, tensors, data_, options);
    result_.samples = calibration.samples;
    constexpr std::int64_t few = 16;
    if (result_.samples < few) {
      result_.notes.push_back(fmt::format(
          "{} {} not enough for reliable ranges: larger values in practice will saturate; a hundred or more are usual",
          result_.samples, result_.samples == 1 ? "sample is" : "samples are"));
    }
    for (auto& [name, histogram] : calibration.tensors) {
      const Histogram::Figures& figures = histogram.figures();
      const onnx::Value* value = prepared_.graph().find_local(name);
      if (value != nullptr && value->is_input && figures.lowest == figures.highest) {
        result_.notes.push_back(
            fmt::format("the input '{}' contains only zeros in all samples, so that its range is not known", name));
      }
      if (figures.nan + figures.infinite != 0) {
        result_.notes.push_back(fmt::format("'{}' contains {} NaN and {} infinite numbers, which were ignored", name,
                                            figures.nan, figures.infinite));
      }
      thresholds_.emplace(name, threshold_of(histogram, options_.thresholds, options_.type));
      histograms_.emplace(name, std::move(histogram));
    }
  }

  void take_scales_from_cache() {
    for (const CalibrationCache::Entry& entry : options_.cache->entries) {
      if (std::isfinite(entry.scale) && entry.scale > 0)
        thresholds_.emplace(entry.tensor, entry.scale * largest_of(options_.type));
    }
    const Int8Plan plan = plan_with_all_but({});
    std::size_t found = 0;
    for (const std::string& tensor : plan.candidates) found += thresholds_.contains(tensor) ? 1 : 0;
    if (found == 0 && !plan.candidates.empty()) {
      throw Error(
          fmt::format("{}: the calibration cache has no scale for any tensor that becomes int8, such as '{}'\nThe "
                      "cache belongs to another network, or its tensors have other names",
                      prepared_.source, plan.candidates.front()));
    }
  }

  /// Returns the steps of tensors; tensors that share a scale get the step of the widest. The scales of a cache are
  /// used as they are.
  [[nodiscard]] Int8Scales scales_of(const Int8Plan& plan) const {
    Int8Scales scales;
    for (const auto& [tensor, group] : plan.tensors) {
      const float own = own_scale(tensor);
      const auto [found, is_new] = scales.emplace(options_.cache ? tensor : group, own);
      if (!is_new) found->second = std::max(found->second, own);
    }
    return scales;
  }

  [[nodiscard]] float own_scale(const std::string& tensor) const {
    if (options_.cache) {
      const CalibrationCache::Entry* entry = options_.cache->find(tensor);
      return entry == nullptr ? 1 : entry->scale;
    }
    const auto found = thresholds_.find(tensor);
    if (found == thresholds_.end()) {
      throw Error(Error::Kind::internal, fmt::format("'{}' was not calibrated", tensor));
    }
    // For zeros alone any step is right, and TensorRT refuses 0.
    return found->second > 0 ? std::max(scale_of(found->second, options_.type), std::numeric_limits<float>::min()) : 1;
  }

  /// Returns a plan whose tensors all have a scale.
  [[nodiscard]] Int8Plan plan_with(const Kept& kept) const {
    Int8Choice choice{.type = options_.type, .kept = kept};
    Int8Plan plan = plan_int8(prepared_, choice);
    while (options_.cache) {
      bool changed = false;
      for (const auto& [tensor, group] : plan.tensors) {
        if (thresholds_.contains(tensor)) continue;
        for (const Int8Node& node : plan.nodes) changed = keep_reader(choice, node, tensor) || changed;
      }
      if (!changed) break;
      plan = plan_int8(prepared_, choice);
    }
    if (options_.cache) {
      for (auto& [tensor, group] : plan.tensors) group = tensor;
    }
    return plan;
  }

  bool keep_reader(Int8Choice& choice, const Int8Node& planned, const std::string& tensor) const {
    const onnx::Value* value = prepared_.graph().find_local(planned.node.id);
    const onnx::Node& node = *value->producer;
    const bool reads = std::any_of(planned.inputs.begin(), planned.inputs.end(),
                                   [&](std::size_t input) { return node.inputs[input]->name == tensor; });
    const bool gives = planned.has_int8_form && planned.node.id == tensor;
    if (!reads && !gives) return false;
    return choice.kept.emplace(planned.node.id, fmt::format("the cache has no scale for '{}'", tensor)).second;
  }

  [[nodiscard]] Int8Model placed_by(const Int8Plan& plan) const { return place_int8(prepared_, plan, scales_of(plan)); }

  // ---- Weights and biases

  [[nodiscard]] ObserveOptions observing(const std::string& what, std::int64_t samples) const {
    ObserveOptions options;
    options.samples = samples;
    options.threads = options_.threads;
    options.progress = [this, what](std::int64_t done, std::int64_t total) {
      say(what, static_cast<std::size_t>(done), static_cast<std::size_t>(total));
    };
    return options;
  }

  void improve_weights() {
    if (options_.cache && (options_.improve.equalize || options_.improve.smooth)) {
      throw Error(fmt::format("{}: equalize and smooth change the ranges that {} contains\nRemove one of the two",
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

  /// Quantizes the model with these layers in f32, and judges it.
  [[nodiscard]] Candidate make(const Kept& kept) {
    Candidate made{.kept = kept,
                   .plan = plan_with(kept),
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
    made.judgment = judge(made.placed.model);
    note_trial(made);
    made.trial = result_.trials.empty() ? 0 : result_.trials.size() - 1;
    return made;
  }

  // ---- Judging

  void run_reference() {
    if (data_.count == 0) return;
    const std::unique_ptr<runtime::CompiledModel> compiled = engine_.compile(
        prepared_, {.kernels = runtime::OperatorKernels::functions, .extra_outputs = {}, .threads = options_.threads});
    const std::int64_t count = std::clamp<std::int64_t>(options_.judged, 1, data_.count);
    std::size_t memory = 0;
    for (std::int64_t i = 0; i < count && memory < most_data_memory; ++i) {
      say("running the network in f32", static_cast<std::size_t>(i), static_cast<std::size_t>(count));
      judged_.push_back(i * data_.count / count);
      reference_.push_back(compiled->run(data_.sample(judged_.back())));
      for (const auto& [name, tensor] : reference_.back()) memory += tensor.bytes.size();
    }
    result_.judged = static_cast<std::int64_t>(judged_.size());
  }

  void measure_f32() {
    if (options_.metric) {
      result_.metric_f32 = measured(prepared_);
    } else if (options_.max_drop && data_.count != 0) {
      result_.metric_f32 = 100;
    }
  }

  /// Returns the user's metric of a model.
  [[nodiscard]] double measured(const onnx::Model& model) const {
    say(fmt::format("measuring with {}", setting_name(Setting::metric)), 0, 1);
    return options_.metric(model);
  }

  [[nodiscard]] Judgment judge(const onnx::Model& model) const {
    Judgment judgment{.outputs = outputs_of(model, reference_.size()), .metric = {}};
    if (options_.metric) {
      judgment.metric = measured(model);
    } else if (options_.max_drop && !reference_.empty()) {
      judgment.metric = agreement_of(judgment.outputs);
    }
    return judgment;
  }

  /// Compares the outputs of a model with the outputs of the f32 network, for this number of samples.
  [[nodiscard]] std::vector<verify::OutputFigures> outputs_of(const onnx::Model& model, std::size_t samples) const {
    std::vector<verify::OutputFigures> outputs;
    if (samples == 0) return outputs;
    const std::unique_ptr<runtime::CompiledModel> compiled =
        engine_.compile(model, {.kernels = runtime::OperatorKernels::functions,
                                .extra_outputs = {},
                                .threads = options_.threads,
                                .round_inside = options_.rest.has_value()});
    const bool sensitivity = samples < reference_.size();
    for (std::size_t i = 0; i < samples; ++i) {
      if (!sensitivity) say(fmt::format("trying {}", to_string(options_.type)), i, samples);
      const std::size_t at = i * reference_.size() / samples;
      const runtime::TensorMap found = compiled->run(data_.sample(judged_[at]));
      std::size_t index = 0;
      for (const auto& [name, expected] : reference_[at]) {
        const verify::OutputFigures figures = verify::figures_of(name, expected, found.at(name));
        if (i == 0) {
          outputs.push_back(figures);
        } else {
          verify::add_run(outputs[index], figures);
        }
        ++index;
      }
    }
    return outputs;
  }

  [[nodiscard]] bool is_good_enough(const Judgment& judgment) const {
    if (reference_.empty()) return true;
    if (options_.limit_db && !verify::score_of(judgment.outputs).meets(*options_.limit_db)) return false;
    return !options_.max_drop || *judgment.metric >= *result_.metric_f32 - *options_.max_drop;
  }

  void note_trial(const Candidate& made) {
    if (reference_.empty()) return;
    result_.trials.push_back({.kept = made.kept.size() - asked_.size(),
                              .snr_db = made.judgment.snr_db(),
                              .metric = made.judgment.metric,
                              .cost = cost_of(prepared_, made.plan)});
  }

  // ---- Search

  /// Judges each layer alone in int8, and sorts the worst first.
  void find_sensitivities(const Kept& kept) {
    const Int8Plan plan = plan_with(kept);
    std::vector<const Int8Node*> layers;
    for (const Int8Node& node : plan.nodes) {
      if (node.has_weight() && node.kind == Int8Kind::computes) layers.push_back(&node);
    }
    const auto samples = std::min<std::size_t>(reference_.size(), sensitivity_samples);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      say("judging each layer alone", i, layers.size());
      Kept others = kept;
      for (const Int8Node* other : layers) {
        if (other != layers[i]) others.emplace(other->node.id, "");
      }
      const double snr_db = verify::score_of(outputs_of(placed_by(plan_with(others)).model, samples)).snr_db;
      result_.sensitivities.push_back({layers[i]->node, snr_db});
    }
    std::stable_sort(result_.sensitivities.begin(), result_.sensitivities.end(),
                     [](const Sensitivity& a, const Sensitivity& b) { return a.snr_db < b.snr_db; });
  }

  [[nodiscard]] Kept with_worst(const Kept& kept, std::size_t count) const {
    Kept more = kept;
    for (std::size_t i = 0; i < count; ++i) {
      const Sensitivity& layer = result_.sensitivities[i];
      more.emplace(layer.node.id, fmt::format("with only this layer in {}, the SNR of the outputs is {:.1f} dB",
                                              to_string(options_.type), layer.snr_db));
    }
    return more;
  }

  [[nodiscard]] bool is_better(const Judgment& a, const Judgment& b) const {
    if (options_.max_drop) return *a.metric > *b.metric;
    return a.snr_db() > b.snr_db();
  }

  /// Searches for the fewest layers to keep in f32. Returns the best model with something in int8 if nothing is good
  /// enough.
  [[nodiscard]] Candidate search(Candidate first) {
    find_sensitivities(asked_);
    const std::size_t layers = result_.sensitivities.size();
    Candidate best = std::move(first);
    std::optional<Candidate> good;
    // The fewest of the worst layers that must stay in f32 are between `few`, which are not enough, and `enough`.
    std::size_t few = 0;
    std::size_t enough = layers + 1;
    while (few + 1 < enough && few < layers) {
      const std::size_t count = enough > layers ? std::clamp<std::size_t>(2 * few, 1, layers) : (few + enough) / 2;
      Candidate found = make(with_worst(asked_, count));
      if (is_good_enough(found.judgment)) {
        enough = count;
        good = std::move(found);
        continue;
      }
      few = count;
      if (count < layers && is_better(found.judgment, best.judgment)) best = std::move(found);
    }
    if (!good) return best;
    result_.met = true;
    // Kept layers become int8 again if the others are enough, from the layer that loses least.
    constexpr std::size_t most_tried = 16;
    for (std::size_t i = 0; i + 1 < enough && i < most_tried; ++i) {
      Kept fewer = good->kept;
      fewer.erase(result_.sensitivities[enough - 2 - i].node.id);
      Candidate found = make(fewer);
      if (is_good_enough(found.judgment)) good = std::move(found);
    }
    return std::move(*good);
  }

  /// Converts nodes that are not int8, and not in the kernel of an int8 node, to f16 or bf16.
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
      // A small difference moves single elements by a whole step of int8, so the limit is at most a little above the
      // ratio that int8 itself has.
      options.limit_db = std::min(limit_of(*options_.rest), chosen.judgment.snr_db() + well_below);
    }
    ChosenTypes types = choose_types(engine_, chosen.placed.model, options);
    Judgment judgment = judge(types.typed.model);
    if (result_.met && !is_good_enough(judgment)) {
      result_.notes.push_back(
          fmt::format("the other nodes stay in f32: with these in {} the outputs miss the requested limit",
                      to_string(*options_.rest)));
      return;
    }
    chosen.placed.model = std::move(types.typed.model);
    chosen.judgment = std::move(judgment);
    result_.rest = std::move(types);
    result_.rest_precision = *options_.rest;
  }

  /// Returns the names of the rounded tensors, in the order of the network.
  [[nodiscard]] std::vector<std::string> rounded_tensors() const {
    std::vector<std::string> names;
    const auto add = [&](const std::vector<onnx::Value*>& values) {
      for (const onnx::Value* value : values) {
        if (value == nullptr || !result_.plan.tensors.contains(value->name)) continue;
        if (std::find(names.begin(), names.end(), value->name) == names.end()) names.push_back(value->name);
      }
    };
    add(prepared_.graph().inputs());
    add(prepared_.graph().initializers());
    for (const onnx::Node* node : prepared_.graph().nodes()) add(node->outputs);
    return names;
  }

  void finish(Candidate chosen) {
    result_.plan = std::move(chosen.plan);
    result_.placed = std::move(chosen.placed);
    result_.outputs = std::move(chosen.judgment.outputs);
    result_.metric_int8 = chosen.judgment.metric;
    result_.rounded = std::move(chosen.rounded);
    result_.corrected = std::move(chosen.corrected);
    result_.written_trial = chosen.trial;
    const Int8Scales scales = scales_of(result_.plan);
    for (const std::string& name : rounded_tensors()) {
      const std::string& group = result_.plan.tensors.at(name);
      QuantizedTensor tensor{.name = name, .group = group, .scale = scales.at(group)};
      tensor.threshold = static_cast<double>(tensor.scale) * largest_of(options_.type);
      const auto found = histograms_.find(name);
      if (found != histograms_.end()) {
        judge_rounding(tensor, found->second, options_.type);
        if (found->second.counted() != 0) tensor.distribution = distribution_of(found->second, tensor.threshold);
      }
      result_.tensors.push_back(std::move(tensor));
    }
    Kept everything;
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
    if (options_.type == EightBits::f8) return;  // a cache holds steps of int8
    if (options_.cache) {
      result_.cache = *options_.cache;
    } else {
      result_.cache.version = newest_cache_version;
      const bool largest = options_.thresholds.method == ThresholdMethod::minmax;
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
  Kept asked_;
  std::map<std::string, double, std::less<>> thresholds_;
  std::map<std::string, Histogram, std::less<>> histograms_;
  std::vector<std::int64_t> judged_;
  std::vector<runtime::TensorMap> reference_;
  ChosenInt8 result_;
};

}  // namespace

bool ChosenInt8::is_in_the_rest(const Int8Node& node) const {
  return rest && node.kind == Int8Kind::kept &&
         std::any_of(rest->nodes.begin(), rest->nodes.end(), [&](const ChosenNode& other) {
           return other.node.node.id == node.node.id && other.node.type == NodeType::narrow;
         });
}

ChosenInt8 choose_int8(const runtime::Engine& engine, const onnx::Model& model, const CalibrationData& data,
                       const Int8Options& options) {
  return Int8Chooser(engine, model, data, options).run();
}

}  // namespace graft::quant
