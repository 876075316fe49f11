// An engine that is two, which check each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/engine.hpp"
#include "verify/known_faults.hpp"

namespace graft::verify {

struct JudgesOptions {
  enum class Asked : std::uint8_t {
    never,           ///< The second one runs what the first does not run, and checks nothing.
    where_in_doubt,  ///< The second one also checks a sample, and a difference that the first found.
    always,          ///< Both run everything that both can and that neither is known to get wrong.
  };
  Asked second = Asked::where_in_doubt;
  /// Of models with so many nodes and more, and of those that both engines are known to get wrong, the first run is
  /// compared; 0: of none.
  std::size_t sampled_nodes = 50;
  /// Of smaller models the first run of one in so many is compared, always the same ones; 0: of none.
  std::size_t sampled_share = 0;
  const KnownFaults* faults = &known_faults();
  std::string first_in_table = "OpenVINO";  ///< KnownFault::engine of the first.
  std::string second_in_table = "ONNX Runtime";
};

/// Results are those of the first engine. The second engine runs a model that the first refuses, that the first alone
/// is known to get wrong (KnownFaults), for which the first contradicts itself (Unstable), and every model where the
/// first is not installed; where the second refuses it too, that is an Error. A model that one engine alone is known to
/// get wrong is not compared. Graft's own kernels are run by the first whatever it is known for. Compiled models have
/// an Answer (runtime::HasAnswer).
///
/// Where both run one model and its outputs differ by more than Tolerance::of_network and the noise floor of the first,
/// the run throws Disputed. Outputs that depend on random numbers are not compared, nor are extra outputs, nor models
/// that run by Graft's own kernels. An engine that is not installed is an Error (missing_tool) with
/// Asked::always, and is done without otherwise.
class Judges : public runtime::Engine {
 public:
  /// "OpenVINO left out of model.onnx: node 'fft' (DFT), which OpenVINO is known to compute wrongly where ...", or why
  /// what is known to be wrong is run nevertheless; empty where nothing is known.
  [[nodiscard]] virtual std::string left_out(const onnx::Model& model) const = 0;
};

/// checked() is an engine with Asked::always, and null with Asked::never. unchecked() makes no samples and has no
/// checked form. Both engines and the faults have to outlive it.
[[nodiscard]] std::unique_ptr<Judges> make_judges(const runtime::Engine& first, const runtime::Engine& second,
                                                  const JudgesOptions& options);

}  // namespace graft::verify
