// Runs a network in f32 and, with some nodes kept in f32, in f16 or bf16, on the same inputs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quant/plan/typed.hpp"
#include "quant/search/choose_types.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/classifiers.hpp"
#include "verify/compare/output_figures.hpp"
#include "verify/compare/suppression.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::quant {

/// The maximum number of typed models that the search for lossy nodes compiles and runs.
inline constexpr std::size_t most_trials = 48;

struct KeptNode {
  WhyKept why;
  std::string reason;
};
/// The nodes that stay in f32, as a map from their key_of() to the reason.
using KeptNodes = std::map<std::string, KeptNode, std::less<>>;

using Decibels = std::map<std::string, double, std::less<>>;

/// The f32 network with its inputs and outputs, with which typed versions of the network are compared.
class TypeTrials {
 public:
  /// `engine` and `options` must outlive the object; `model` is copied.
  TypeTrials(const runtime::Engine& engine, const onnx::Model& model, const ChooseOptions& options);

  [[nodiscard]] const runtime::Engine& engine() const { return engine_; }
  [[nodiscard]] const ChooseOptions& options() const { return options_; }
  /// Returns the f32 network as prepare_for_types returns it.
  [[nodiscard]] const onnx::Model& prepared() const { return prepared_; }
  [[nodiscard]] const onnx::Graph& graph() const { return prepared_.graph(); }
  /// Returns the inputs of each run, by name. They are empty before run_reference().
  [[nodiscard]] const std::vector<runtime::TensorMap>& inputs() const { return inputs_; }
  /// Returns the number of typed models that were run so far.
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool is_exhausted() const { return count_ >= most_trials; }

  void report_progress(const std::string& what, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  /// Chooses the inputs from the data or generates them, runs the f32 network, and returns a description of the inputs
  /// of the first run, one line each.
  std::vector<std::string> run_reference();
  /// Returns the f32 tensors that the nodes of the network compute.
  [[nodiscard]] std::vector<const onnx::Value*> real_tensors() const;
  /// Returns whether the outputs of a node depend on random numbers.
  [[nodiscard]] bool is_random(const onnx::Node& node) const;

  [[nodiscard]] TypedModel typed_with(const KeptNodes& kept) const;
  /// Runs the network with the nodes `kept` in f32 and the others in the narrow type (f16 or bf16). Returns, for the
  /// worst run of each output, the signal-to-noise ratio and other measures of its error.
  [[nodiscard]] std::vector<verify::OutputFigures> try_types(const KeptNodes& kept);
  /// Runs the network with the nodes `kept` in f32, and returns the signal-to-noise ratio, in dB, of each of its
  /// tensors in the worst run. It is minus infinity if elements that are finite in the f32 network are not finite.
  [[nodiscard]] Decibels tensor_decibels(const KeptNodes& kept);

 private:
  /// Returns the signal-to-noise ratio and other measures of the error of an output, whose tensors in one run are in
  /// `expected` and `found`. An output that depends on random numbers is reported without errors, because each run
  /// generates different numbers.
  [[nodiscard]] verify::OutputFigures judged(const onnx::Value& output, const runtime::TensorMap& expected,
                                             const runtime::TensorMap& found, bool by_suppression) const;

  const runtime::Engine& engine_;
  const ChooseOptions& options_;
  onnx::Model prepared_;
  verify::PartialRuns reference_;
  verify::OutputNames classifiers_;
  std::optional<verify::SuppressionTail> suppression_;  ///< The end of a detector, whose inputs are judged.
  verify::RandomValues random_;                         ///< The values of prepared_ that depend on random numbers.
  std::vector<runtime::TensorMap> inputs_;
  std::vector<runtime::TensorMap> expected_;
  std::size_t count_ = 0;
};

}  // namespace graft::quant
