// Combines two engines that check each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/engine.hpp"
#include "verify/judge/known_faults.hpp"

namespace graft::verify {

/// Settings of two engines that check each other: when the second one is used, which runs are compared, and the table
/// of known faults.
struct JudgesOptions {
  enum class Asked : std::uint8_t {
    never,  ///< The second engine runs the models that the first does not run, and checks nothing.
    /// The second engine also repeats a sample of the runs, and confirms differences that the first engine found.
    where_in_doubt,
    /// Both engines run every model that both support, unless exactly one of them is known to compute the model
    /// wrongly.
    always,
  };
  Asked second = Asked::where_in_doubt;
  /// The first run of a model is compared if the model has at least this number of nodes, or if both engines are known
  /// to compute it wrongly. 0 disables both.
  std::size_t sampled_nodes = 50;
  /// Every model with fewer nodes is selected by a hash with a probability of 1 / sampled_share, and its first run is
  /// compared. 0 selects none.
  std::size_t sampled_share = 0;
  const KnownFaults* faults = &known_faults();
  /// The name of the first engine in the table of known faults, KnownFault::engine.
  std::string first_in_table = "OpenVINO";
  std::string second_in_table = "ONNX Runtime";
};

/// An engine that runs models in the first of two engines and checks them with the second.
///
/// The second engine runs a model alone if the first refuses it, if only the first is known to compute it wrongly
/// (KnownFaults), if the first contradicts itself (Unstable), or if the first is not installed. If the second engine
/// refuses the model too, an Error is thrown. A model that exactly one engine is known to compute wrongly is not
/// compared. Models that run with Graft's own kernels run in the first engine, whatever its known faults. Compiled
/// models implement runtime::HasAnswer.
///
/// If both engines run a model and their outputs differ by more than network_tolerance and the noise floor of the first
/// engine, the run throws Disputed. Outputs that depend on random numbers, extra outputs, and models that run with
/// Graft's own kernels are not compared. With Asked::always, an engine that is not installed causes an Error
/// (missing_tool); otherwise the other engine runs all models.
class Judges : public runtime::Engine {
 public:
  /// Returns why one of the engines is not used for a model ("OpenVINO is not used for model.onnx: node 'fft' (DFT),
  /// which OpenVINO is known to compute wrongly where ..."), or why a model with known faults runs nevertheless.
  /// Returns an empty string if no fault is known.
  [[nodiscard]] virtual std::string left_out(const onnx::Model& model) const = 0;
};

/// Returns an engine that combines `first` and `second`. Both, and `options.faults`, must outlive the result. The
/// checked() of the result compares with Asked::always; it is null if the options have Asked::never. The unchecked() of
/// the result compares no runs, and has no checked() of its own.
[[nodiscard]] std::unique_ptr<Judges> make_judges(const runtime::Engine& first, const runtime::Engine& second,
                                                  const JudgesOptions& options);

}  // namespace graft::verify
