// Runs a network in f32 and, with some nodes kept in f32, in f16 or bf16, on the same inputs.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "quant/plan/typed.hpp"
#include "quant/search/choose_types.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/output_figures.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::quant {

/// The maximum number of models that the search for lossy nodes runs.
inline constexpr std::size_t most_trials = 48;

struct KeptNode {
  WhyKept why;
  std::string reason;
};
/// Maps the key_of a node that stays in f32 to the reason.
using KeptNodes = std::map<std::string, KeptNode, std::less<>>;

using Decibels = std::map<std::string, double, std::less<>>;

/// A network in f32, its inputs and outputs, and trials of the network in another type.
class TypeTrials {
 public:
  /// Engine and options must outlive the trials.
  TypeTrials(const runtime::Engine& engine, const onnx::Model& model, const ChooseOptions& options);

  [[nodiscard]] const runtime::Engine& engine() const { return engine_; }
  [[nodiscard]] const ChooseOptions& options() const { return options_; }
  /// Returns the network in f32, in the form that make_typed expects.
  [[nodiscard]] const onnx::Model& prepared() const { return prepared_; }
  [[nodiscard]] const onnx::Graph& graph() const { return prepared_.graph(); }
  /// Returns the inputs of each run.
  [[nodiscard]] const std::vector<runtime::TensorMap>& inputs() const { return inputs_; }
  /// Returns the number of models that were run.
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool is_exhausted() const { return count_ >= most_trials; }

  void report_progress(const std::string& what, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  /// Chooses the inputs, runs the network in f32, and returns a description of the inputs of the first run.
  std::vector<std::string> run_reference();
  /// Returns the tensors of f32 that the network computes.
  [[nodiscard]] std::vector<const onnx::Value*> real_tensors() const;
  /// Returns whether a node computes from random numbers.
  [[nodiscard]] bool is_random(const onnx::Node& node) const;

  [[nodiscard]] TypedModel typed_with(const KeptNodes& kept) const;
  /// Returns the figures of the outputs of the typed model, each in its worst run.
  [[nodiscard]] std::vector<verify::OutputFigures> try_types(const KeptNodes& kept);
  /// Returns the signal-to-noise ratio in dB of each tensor of the typed model, in the worst run; minus infinity if
  /// elements that are finite in the reference are not finite.
  [[nodiscard]] Decibels tensor_decibels(const KeptNodes& kept);

 private:
  /// Returns the error figures of an output. An output of random numbers does not count, because each run generates
  /// different numbers.
  [[nodiscard]] verify::OutputFigures judged(const onnx::Value& output, const runtime::TensorMap& expected,
                                             const runtime::TensorMap& found) const;

  const runtime::Engine& engine_;
  const ChooseOptions& options_;
  onnx::Model prepared_;
  verify::PartialRuns reference_;
  verify::RandomValues random_;  ///< The values of prepared_ that depend on random numbers.
  std::vector<runtime::TensorMap> inputs_;
  std::vector<runtime::TensorMap> expected_;
  std::size_t count_ = 0;
};

}  // namespace graft::quant
