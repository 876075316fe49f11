// Judges a quantized model: compares its outputs with the outputs of the f32 network, and measures the user's metric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quant/search/choose_int8.hpp"
#include "verify/compare/classifiers.hpp"
#include "verify/compare/suppression.hpp"

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
      : engine_(engine),
        prepared_(prepared),
        data_(data),
        options_(options),
        classifiers_(verify::classifier_outputs(prepared, options.judge_outputs)),
        suppression_(verify::SuppressionTail::find(prepared)) {}

  /// Measures the metric of the f32 network, if there is a metric. Throws Error if the metric is the top-1 agreement
  /// and the network has no output of a classifier.
  void measure_f32();
  /// Runs the f32 network on the samples and stores its outputs, with which the outputs of other models are compared.
  void run_reference();

  /// Returns the outputs whose top-1 agreement is the metric; empty for another metric and without one.
  [[nodiscard]] std::vector<std::string> metric_outputs() const;
  [[nodiscard]] std::optional<double> metric_f32() const { return metric_f32_; }
  /// Returns the number of samples on which outputs are compared. If it is 0, judge() accepts every model.
  [[nodiscard]] std::size_t samples() const { return reference_.size(); }

  [[nodiscard]] Judgment judge(const onnx::Model& model) const;
  /// Runs a model on the first `samples` samples, and returns for each output the signal-to-noise ratio and other
  /// measures of its error compared with the f32 network. If `scores` is not null, also appends to it the scores
  /// of the classifier in each run, from which accuracy_of() computes the metric.
  [[nodiscard]] std::vector<verify::OutputFigures> outputs_of(const onnx::Model& model, std::size_t samples,
                                                              std::vector<runtime::TensorMap>* scores = nullptr) const;
  [[nodiscard]] bool is_good_enough(const Judgment& judgment) const;
  [[nodiscard]] bool is_better(const Judgment& a, const Judgment& b) const;

 private:
  /// Returns the value of the user's metric for a model; larger is better.
  [[nodiscard]] double measured(const onnx::Model& model) const;
  /// Returns the accuracy, in percent, of results for the judged samples.
  [[nodiscard]] double accuracy_of(const std::vector<runtime::TensorMap>& results) const;
  /// Returns the tensors of a model by which its detections are judged, without its inputs and outputs.
  [[nodiscard]] std::vector<std::string> tensors_before_suppression(const onnx::Model& model) const;

  const runtime::Engine& engine_;
  const onnx::Model& prepared_;
  const CalibrationData& data_;
  const Int8Options& options_;
  verify::OutputNames classifiers_;
  std::optional<verify::SuppressionTail> suppression_;  ///< The end of a detector, whose inputs are judged.
  std::optional<double> metric_f32_;
  std::vector<std::int64_t> judged_;  ///< The indices of the samples.
  std::vector<runtime::TensorMap> reference_;
};

}  // namespace graft::quant
