// An engine that is two, which check each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/engine.hpp"

namespace graft::verify {

struct JudgesOptions {
  enum class Asked : std::uint8_t {
    where_in_doubt,  ///< The second one runs what the first refuses, and a sample; see `sampled_nodes`.
    always,          ///< Both run everything that both can.
  };
  Asked second = Asked::where_in_doubt;
  /// Of models with so many nodes and more the first run is compared; 0: of none.
  std::size_t sampled_nodes = 50;
};

/// Results are those of the first engine, or of the second where the first refuses the model. Where both run one model
/// and its outputs differ by more than Tolerance::of_network and the noise floor of the first, the run throws Disputed.
/// Outputs that depend on random numbers are not compared, nor are extra outputs, nor models that run by Graft's own
/// kernels or with noise. A second engine that is not installed is an Error (missing_tool) with Asked::always, and is
/// done without otherwise.
///
/// checked() is an engine with Asked::always. unchecked() makes no samples and has no checked form. Both engines have
/// to outlive it.
[[nodiscard]] std::unique_ptr<runtime::Engine> make_judges(const runtime::Engine& first, const runtime::Engine& second,
                                                           const JudgesOptions& options);

}  // namespace graft::verify
