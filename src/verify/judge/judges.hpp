// Combines two engines that check each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/engine.hpp"
#include "verify/judge/known_faults.hpp"

namespace graft::verify {

/// When the second engine is used, which runs are compared, and where the known faults of both engines are listed.
struct JudgesOptions {
  enum class Asked : std::uint8_t {
    never,  ///< The second engine runs the models that the first does not run, and checks nothing.
    /// The second engine also checks a sample of runs, and confirms differences that the first engine found.
    where_in_doubt,
    /// Both engines run every model that both support, unless exactly one of them is known to compute it wrongly.
    always,
  };
  Asked second = Asked::where_in_doubt;
  /// The minimum number of nodes of models whose first run is compared. The first run is also compared for models that
  /// both engines are known to compute wrongly. With 0, neither is done.
  std::size_t sampled_nodes = 50;
  /// The first run is compared for one in this many smaller models, always for the same ones; with 0, for none.
  std::size_t sampled_share = 0;
  const KnownFaults* faults = &known_faults();
  /// The name of the first engine in the table of known faults, KnownFault::engine.
  std::string first_in_table = "OpenVINO";
  std::string second_in_table = "ONNX Runtime";
};

/// An engine whose results are those of the first of two engines. The second engine runs a model that the first
/// refuses, that only the first is known to compute wrongly (KnownFaults), or for which the first contradicts itself
/// (Unstable), and every model if the first is not installed. If the second engine refuses the model too, an Error is
/// thrown. A model that one engine alone is known to compute wrongly is not compared. Graft's own kernels run in the
/// first engine, whatever its known faults. Compiled models have an Answer (runtime::HasAnswer).
///
/// If both engines run a model and their outputs differ by more than network_tolerance and the noise floor of the
/// first engine, the run throws Disputed. Not compared are outputs that depend on random numbers, extra outputs, and
/// models that run with Graft's own kernels. An engine that is not installed causes an Error (missing_tool) with
/// Asked::always; otherwise the other engine runs all models.
class Judges : public runtime::Engine {
 public:
  /// Returns why an engine is not used ("OpenVINO is not used for model.onnx: node 'fft' (DFT), which OpenVINO is known
  /// to compute wrongly where ..."), or why a model with known faults is run nevertheless; empty if no fault is known.
  [[nodiscard]] virtual std::string left_out(const onnx::Model& model) const = 0;
};

/// Returns the engine. Its checked() uses Asked::always, or is null with Asked::never. Its unchecked() compares no
/// samples and has no checked() of its own. Both engines and the faults must outlive it.
[[nodiscard]] std::unique_ptr<Judges> make_judges(const runtime::Engine& first, const runtime::Engine& second,
                                                  const JudgesOptions& options);

}  // namespace graft::verify
