#include "quant/search/int8_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graft/error.hpp"
#include "quant/calibrate/calibrate.hpp"
#include "quant/plan/typed.hpp"
#include "verify/compare/figures.hpp"

namespace graft::quant {
namespace {

/// The position of the value that represents a bin, in bin widths from its lower end.
constexpr double middle_of_bin = 0.5;

/// Sets the observed range, the rounding error and the share of saturated elements of `tensor`, computed from its
/// histogram and its scale.
void judge_rounding(QuantizedTensor& tensor, const Histogram& histogram, EightBits type) {
  tensor.was_observed = true;
  tensor.lowest = histogram.figures().lowest;
  tensor.highest = histogram.figures().highest;
  const double scale = tensor.scale;
  const double largest = largest_of(type);
  // A number up to half a step beyond the largest is still rounded to the largest. The steps of f8 are 32 at that end.
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

/// Returns the distribution of a tensor's absolute values for the report, in 60 bins from 0 to the largest observed
/// value or the threshold, whichever is larger.
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

/// Returns the names of the tensors to calibrate: those that the plan quantizes and, if the search may keep more layers
/// in f32, those that such plans would quantize. No other tensors are included, because observing a tensor may prevent
/// a fusion in the CPU engine.
std::vector<std::string> tensors_to_calibrate(const onnx::Model& prepared, const Int8Options& options,
                                              const KeptLayers& kept) {
  const Int8Plan plan = plan_int8(prepared, {.type = options.type, .kept = kept});
  if (options.limit_db || options.max_drop) return plan.candidates;
  std::vector<std::string> tensors;
  for (const auto& [name, group] : plan.tensors) tensors.push_back(name);
  return tensors;
}

/// Returns the names of the tensors in the plan that the model rounds, in the order inputs, constants, node outputs.
std::vector<std::string> rounded_tensors(const onnx::Graph& graph, const Int8Plan& plan) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<onnx::Value*>& values) {
    for (const onnx::Value* value : values) {
      if (value == nullptr || !plan.tensors.contains(value->name)) continue;
      if (std::find(names.begin(), names.end(), value->name) == names.end()) names.push_back(value->name);
    }
  };
  add(graph.inputs());
  add(graph.initializers());
  for (const onnx::Node* node : graph.nodes()) add(node->outputs);
  return names;
}

}  // namespace

std::int64_t Int8Scaling::calibrate(const runtime::Engine& engine, const CalibrationData& data, const KeptLayers& kept,
                                    std::vector<std::string>& notes) {
  const std::vector<std::string> tensors = tensors_to_calibrate(prepared_, options_, kept);
  CalibrateOptions options;
  options.threads = options_.threads;
  options.state = options_.state;
  if (options_.parts) {
    options.parts = [&](SampleRange samples) {
      return options_.parts({.model = prepared_, .tensors = tensors, .samples = samples});
    };
  }
  options.progress = [&](std::int64_t done, std::int64_t total) {
    options_.report_progress("calibrating", static_cast<std::size_t>(done), static_cast<std::size_t>(total));
  };
  Calibration calibration = quant::calibrate(engine, prepared_, tensors, data, options);
  constexpr std::int64_t few = 16;
  if (calibration.samples < few) {
    notes.push_back(fmt::format(
        "{} {} not enough for reliable ranges: larger values in practice will saturate; use a hundred samples or more",
        calibration.samples, calibration.samples == 1 ? "sample is" : "samples are"));
  }
  for (auto& [name, histogram] : calibration.tensors) {
    const Histogram::Figures& figures = histogram.figures();
    const onnx::Value* value = prepared_.graph().find_local(name);
    if (value != nullptr && value->is_input && figures.lowest == figures.highest) {
      notes.push_back(fmt::format("the input '{}' contains only zeros in all samples, so its range is unknown", name));
    }
    if (figures.nan + figures.infinite != 0) {
      notes.push_back(fmt::format("'{}' contains {} NaN and {} infinite values, which were ignored", name, figures.nan,
                                  figures.infinite));
    }
    thresholds_.emplace(name, threshold_of(histogram, options_.thresholds(), options_.type));
    histograms_.emplace(name, std::move(histogram));
  }
  return calibration.samples;
}

void Int8Scaling::read_cache() {
  for (const CalibrationCache::Entry& entry : options_.cache->entries) {
    if (std::isfinite(entry.scale) && entry.scale > 0)
      thresholds_.emplace(entry.tensor, entry.scale * largest_of(options_.type));
  }
  const Int8Plan plan = plan_int8(prepared_, {.type = options_.type, .kept = {}});
  std::size_t found = 0;
  for (const std::string& tensor : plan.candidates) found += thresholds_.contains(tensor) ? 1 : 0;
  if (found == 0 && !plan.candidates.empty()) {
    throw Error(fmt::format(
        "{}: the calibration cache has no scale for any tensor that becomes int8, such as '{}'\nPass the calibration "
        "cache of this network; the cache belongs to another network, or its tensors have other names",
        prepared_.source, plan.candidates.front()));
  }
}

Int8Scales Int8Scaling::scales_of(const Int8Plan& plan) const {
  Int8Scales scales;
  for (const auto& [tensor, group] : plan.tensors) {
    const float own = own_scale(tensor);
    const auto [found, is_new] = scales.emplace(options_.cache ? tensor : group, own);
    if (!is_new) found->second = std::max(found->second, own);
  }
  return scales;
}

float Int8Scaling::own_scale(const std::string& tensor) const {
  if (options_.cache) {
    const CalibrationCache::Entry* entry = options_.cache->find(tensor);
    return entry == nullptr ? 1 : entry->scale;
  }
  const auto found = thresholds_.find(tensor);
  if (found == thresholds_.end()) {
    throw Error(Error::Kind::internal, fmt::format("'{}' was not calibrated", tensor));
  }
  // A tensor of zeros may have any step, but TensorRT refuses 0.
  return found->second > 0 ? std::max(scale_of(found->second, options_.type), std::numeric_limits<float>::min()) : 1;
}

Int8Plan Int8Scaling::plan_with(const KeptLayers& kept) const {
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

bool Int8Scaling::keep_reader(Int8Choice& choice, const Int8Node& planned, const std::string& tensor) const {
  const onnx::Value* value = prepared_.graph().find_local(planned.node.id);
  const onnx::Node& node = *value->producer;
  const bool reads = std::any_of(planned.inputs.begin(), planned.inputs.end(),
                                 [&](std::size_t input) { return node.inputs[input]->name == tensor; });
  const bool gives = planned.has_int8_form && planned.node.id == tensor;
  if (!reads && !gives) return false;
  return choice.kept.emplace(planned.node.id, fmt::format("the cache has no scale for '{}'", tensor)).second;
}

std::vector<QuantizedTensor> Int8Scaling::describe_tensors(const Int8Plan& plan) const {
  std::vector<QuantizedTensor> tensors;
  const Int8Scales scales = scales_of(plan);
  for (const std::string& name : rounded_tensors(prepared_.graph(), plan)) {
    const std::string& group = plan.tensors.at(name);
    QuantizedTensor tensor{.name = name, .group = group, .scale = scales.at(group)};
    tensor.threshold = static_cast<double>(tensor.scale) * largest_of(options_.type);
    const auto found = histograms_.find(name);
    if (found != histograms_.end()) {
      judge_rounding(tensor, found->second, options_.type);
      if (found->second.counted() != 0) tensor.distribution = distribution_of(found->second, tensor.threshold);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace graft::quant
