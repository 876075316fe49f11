#include "quant/search/int8_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "verify/compare/figures.hpp"

namespace graft::quant {
namespace {

/// The maximum total size, in bytes, of the f32 network's outputs that are stored for comparisons.
constexpr std::size_t most_data_memory = std::size_t{1} << 30;

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

}  // namespace

void Int8Judge::measure_f32() {
  if (options_.metric) {
    metric_f32_ = measured(prepared_);
  } else if (!options_.labels.empty()) {
    static_cast<void>(verify::output_for_labels(classifiers_));  // run_reference() measures the accuracy
  } else if (options_.max_drop && data_.count != 0) {
    if (classifiers_.empty()) {
      throw Error(fmt::format(
          "{}: without {} this is the drop of the top-1 agreement with f32, and no output of the model is recognized "
          "as "
          "the scores of a classifier\nName such an output with {}, pass a metric with {}, or limit the error of all "
          "outputs with {}",
          setting_name(Setting::max_drop), setting_name(Setting::metric), setting_name(Setting::judge_outputs),
          setting_name(Setting::metric), setting_name(Setting::limit_db)));
    }
    metric_f32_ = 100;
  }
}

std::vector<std::string> Int8Judge::metric_outputs() const {
  if (options_.metric || !metric_f32_) return {};
  return {classifiers_.begin(), classifiers_.end()};
}

void Int8Judge::run_reference() {
  if (data_.count == 0) return;
  const std::unique_ptr<runtime::CompiledModel> compiled =
      engine_.compile(prepared_, {.kernels = runtime::OperatorKernels::functions,
                                  .extra_outputs = tensors_before_suppression(prepared_),
                                  .threads = options_.threads});
  const std::int64_t count = std::clamp<std::int64_t>(options_.judged, 1, data_.count);
  std::size_t memory = 0;
  for (std::int64_t i = 0; i < count && memory < most_data_memory; ++i) {
    options_.report_progress("running the network in f32", static_cast<std::size_t>(i),
                             static_cast<std::size_t>(count));
    judged_.push_back(i * data_.count / count);
    reference_.push_back(compiled->run(data_.sample(judged_.back())));
    for (const auto& [name, tensor] : reference_.back()) memory += tensor.bytes.size();
  }
  if (!options_.metric && !options_.labels.empty()) metric_f32_ = accuracy_of(reference_);
}

double Int8Judge::accuracy_of(const std::vector<runtime::TensorMap>& results) const {
  constexpr double whole = 100;
  const std::string output = verify::output_for_labels(classifiers_);
  verify::CountedLabels counted;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const onnx::TensorData& scores = results[i].at(output);
    const auto rows = static_cast<std::size_t>(scores.element_count()) / verify::classes_of(scores.dims);
    const std::size_t first = std::min(options_.labels.size(), static_cast<std::size_t>(judged_[i]) * rows);
    const verify::CountedLabels in_run = verify::count_correct(scores, std::span(options_.labels).subspan(first));
    counted.samples += in_run.samples;
    counted.correct += in_run.correct;
  }
  return counted.samples == 0 ? 0 : whole * static_cast<double>(counted.correct) / static_cast<double>(counted.samples);
}

double Int8Judge::measured(const onnx::Model& model) const {
  options_.report_progress(fmt::format("measuring with {}", setting_name(Setting::metric)), 0, 1);
  return options_.metric(model);
}

Judgment Int8Judge::judge(const onnx::Model& model) const {
  const bool has_labels = !options_.metric && !options_.labels.empty();
  std::vector<runtime::TensorMap> results;
  Judgment judgment{.outputs = outputs_of(model, reference_.size(), has_labels ? &results : nullptr), .metric = {}};
  if (options_.metric) {
    judgment.metric = measured(model);
  } else if (has_labels) {
    if (!reference_.empty()) judgment.metric = accuracy_of(results);
  } else if (options_.max_drop && !reference_.empty()) {
    judgment.metric = agreement_of(judgment.outputs);
  }
  return judgment;
}

std::vector<verify::OutputFigures> Int8Judge::outputs_of(const onnx::Model& model, std::size_t samples,
                                                         std::vector<runtime::TensorMap>* scores) const {
  std::vector<verify::OutputFigures> outputs;
  if (samples == 0) return outputs;
  const std::unique_ptr<runtime::CompiledModel> compiled =
      engine_.compile(model, {.kernels = runtime::OperatorKernels::functions,
                              .extra_outputs = tensors_before_suppression(model),
                              .threads = options_.threads,
                              .round_inside = options_.rest.has_value()});
  const auto is_output = [&](const std::string& name) {
    const onnx::Value* value = prepared_.graph().find_local(name);
    return value != nullptr && value->is_output();
  };
  const std::vector<std::string> before = tensors_before_suppression(model);
  const bool by_suppression =
      suppression_ && std::ranges::all_of(suppression_->inputs(), [&](const std::string& name) {
        return reference_.front().contains(name) && (is_output(name) || std::ranges::count(before, name) != 0);
      });
  const bool sensitivity = samples < reference_.size();
  for (std::size_t i = 0; i < samples; ++i) {
    if (!sensitivity) options_.report_progress(fmt::format("trying {}", to_string(options_.type)), i, samples);
    const std::size_t at = i * reference_.size() / samples;
    const runtime::TensorMap found = compiled->run(data_.sample(judged_[at]));
    if (scores != nullptr) {
      const std::string output = verify::output_for_labels(classifiers_);
      scores->push_back({{output, found.at(output)}});
    }
    std::size_t index = 0;
    for (const auto& [name, expected] : reference_[at]) {
      if (!is_output(name)) continue;
      const bool is_detection = by_suppression && suppression_->outputs().contains(name);
      const verify::OutputFigures figures =
          is_detection && is_floating_point(expected.type)
              ? suppression_->figures(name, reference_[at], found)
              : verify::figures_of(name, expected, found.at(name), classifiers_.contains(name));
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

std::vector<std::string> Int8Judge::tensors_before_suppression(const onnx::Model& model) const {
  std::vector<std::string> names;
  if (!suppression_ || !suppression_->has_inputs(model)) return names;
  for (const std::string& name : suppression_->inputs()) {
    const onnx::Value* value = model.graph().find_local(name);
    if (value->producer != nullptr && !value->is_output()) names.push_back(name);
  }
  return names;
}

bool Int8Judge::is_good_enough(const Judgment& judgment) const {
  if (reference_.empty()) return true;
  if (options_.limit_db && !verify::score_of(judgment.outputs).meets(*options_.limit_db)) return false;
  return !options_.max_drop || *judgment.metric >= *metric_f32_ - *options_.max_drop;
}

bool Int8Judge::is_better(const Judgment& a, const Judgment& b) const {
  if (options_.max_drop) return *a.metric > *b.metric;
  return a.snr_db() > b.snr_db();
}

}  // namespace graft::quant
