#include "quant/search/int8_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

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
  } else if (options_.max_drop && data_.count != 0) {
    metric_f32_ = 100;
  }
}

void Int8Judge::run_reference() {
  if (data_.count == 0) return;
  const std::unique_ptr<runtime::CompiledModel> compiled = engine_.compile(
      prepared_, {.kernels = runtime::OperatorKernels::functions, .extra_outputs = {}, .threads = options_.threads});
  const std::int64_t count = std::clamp<std::int64_t>(options_.judged, 1, data_.count);
  std::size_t memory = 0;
  for (std::int64_t i = 0; i < count && memory < most_data_memory; ++i) {
    options_.report_progress("running the network in f32", static_cast<std::size_t>(i),
                             static_cast<std::size_t>(count));
    judged_.push_back(i * data_.count / count);
    reference_.push_back(compiled->run(data_.sample(judged_.back())));
    for (const auto& [name, tensor] : reference_.back()) memory += tensor.bytes.size();
  }
}

double Int8Judge::measured(const onnx::Model& model) const {
  options_.report_progress(fmt::format("measuring with {}", setting_name(Setting::metric)), 0, 1);
  return options_.metric(model);
}

Judgment Int8Judge::judge(const onnx::Model& model) const {
  Judgment judgment{.outputs = outputs_of(model, reference_.size()), .metric = {}};
  if (options_.metric) {
    judgment.metric = measured(model);
  } else if (options_.max_drop && !reference_.empty()) {
    judgment.metric = agreement_of(judgment.outputs);
  }
  return judgment;
}

std::vector<verify::OutputFigures> Int8Judge::outputs_of(const onnx::Model& model, std::size_t samples) const {
  std::vector<verify::OutputFigures> outputs;
  if (samples == 0) return outputs;
  const std::unique_ptr<runtime::CompiledModel> compiled =
      engine_.compile(model, {.kernels = runtime::OperatorKernels::functions,
                              .extra_outputs = {},
                              .threads = options_.threads,
                              .round_inside = options_.rest.has_value()});
  const bool sensitivity = samples < reference_.size();
  for (std::size_t i = 0; i < samples; ++i) {
    if (!sensitivity) options_.report_progress(fmt::format("trying {}", to_string(options_.type)), i, samples);
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
