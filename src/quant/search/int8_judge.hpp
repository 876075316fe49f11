// Judges a quantized model: compares its outputs with the outputs of the f32 network, and measures the user's metric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "quant/search/choose_int8.hpp"

namespace graft::quant {

struct Judgment {
  std::vector<verify::OutputFigures> outputs;
  std::optional<double> metric;
  [[nodiscard]] double snr_db() const { return verify::score_of(outputs).snr_db; }
};

class Int8Judge {
 public:
  /// All arguments must outlive the object.
  Int8Judge(const runtime::Engine& engine, const onnx::Model& prepared, const CalibrationData& data,
            const Int8Options& options)
      : engine_(engine), prepared_(prepared), data_(data), options_(options) {}

  /// Measures the user's metric on the f32 network and stores it. Does nothing if no metric is set.
  void measure_f32();
  /// Runs the f32 network on the samples and stores its outputs, with which the outputs of other models are compared.
  void run_reference();

  [[nodiscard]] std::optional<double> metric_f32() const { return metric_f32_; }
  /// Returns the number of samples on which outputs are compared. If it is 0, judge() accepts every model.
  [[nodiscard]] std::size_t samples() const { return reference_.size(); }

  [[nodiscard]] Judgment judge(const onnx::Model& model) const;
  /// Returns the error figures of a model's outputs, compared with those of the f32 network on the first `samples`
  /// samples.
  [[nodiscard]] std::vector<verify::OutputFigures> outputs_of(const onnx::Model& model, std::size_t samples) const;
  [[nodiscard]] bool is_good_enough(const Judgment& judgment) const;
  [[nodiscard]] bool is_better(const Judgment& a, const Judgment& b) const;

 private:
  /// Returns the value of the user's metric for a model; larger is better.
  [[nodiscard]] double measured(const onnx::Model& model) const;

  const runtime::Engine& engine_;
  const onnx::Model& prepared_;
  const CalibrationData& data_;
  const Int8Options& options_;
  std::optional<double> metric_f32_;
  std::vector<std::int64_t> judged_;  ///< The indices of the samples.
  std::vector<runtime::TensorMap> reference_;
};

}  // namespace graft::quant
