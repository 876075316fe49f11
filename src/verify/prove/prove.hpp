// Proves by running both models that a rewritten region computes the same as before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"
#include "verify/judge/dispute.hpp"

namespace graft::verify {

/// The settings of prove_region and measure_region.
struct ProofOptions {
  std::uint64_t seed = 0;
  std::size_t seeds = 2;                    ///< Number of seeds for each shape and magnitude.
  std::optional<Tolerance> tolerance = {};  ///< Replaces rewrite_tolerance of each output's type.
  /// The maximum number of elements of one input; sizes of symbolic dimensions are chosen accordingly. If the
  /// dimensions are fixed, all inputs together may have 256 times as many elements.
  std::int64_t max_elements = 1 << 20;
  /// Whether to make only a few trials: one set of sizes, with normally distributed values and the region's own
  /// constants.
  bool spot_check = false;
  /// Whether all trials use normally distributed values times 0.1, because larger ones make the results overflow.
  bool small_values = false;
  /// The names of inputs for which the proof also makes trials with a tensor that has no elements; at least one of
  /// these trials must run. If Engine::second() exists, the second engine makes all trials of the proof.
  std::vector<std::string> emptied = {};
};

/// The result of prove_region or measure_region.
struct ProofResult {
  bool proven = false;
  std::size_t trials = 0;   ///< Number of runs that were compared.
  std::size_t skipped = 0;  ///< The number of trials whose sizes or elements the original region refuses.
  /// The number of trials in which outputs exceeded the tolerance and only the noise floor of the original region
  /// explains it.
  std::size_t within_noise = 0;
  std::size_t without_elements = 0;  ///< Number of trials in which an input of ProofOptions::emptied had no elements.
  std::string output;                ///< The output with the worst difference.
  Difference worst;
  /// A description of the result for reports, such as "30 runs, largest difference 1.2e-07 at [1, 5], relative 3e-07 at
  /// [0, 2]", or the counterexample with its inputs, output and numbers.
  std::string text;
  std::optional<Dispute> dispute = {};  ///< If set, the region is not proven, and `text` states why.
};

/// A region and its rewrite in which fixed input sizes are replaced by symbols.
struct OpenSizes {
  onnx::Model before;
  onnx::Model after;
  std::vector<std::string> symbols;  ///< The symbols that replace fixed sizes.
  std::int64_t largest_named = 0;    ///< The largest integer in the two models, ignoring those that mean "to the end".
};

/// Replaces fixed input sizes of at least 9 by symbols, equal sizes by the same symbol, unless an integer in one of the
/// models equals the size. A network of 224 x 224 can then be run on images of a few pixels, and regions that differ
/// only in such sizes become equal. Returns nothing if there is no such size, or if the shapes of inner values cannot
/// be inferred.
[[nodiscard]] std::optional<OpenSizes> with_open_sizes(const onnx::Model& before, const onnx::Model& after);

/// Runs both models, which must have the same input and output names, on the same inputs, compares their outputs, and
/// returns whether they are proven to be equal.
///
/// The trials use several sizes of each symbolic dimension (all different, all the same, all 1, one of the first four
/// 1), several seeds, magnitudes from 1e-15 to 1e15 whose squares the types can represent, zeros, ones, negative
/// numbers, and the region's own constants. They use infinities if the region computes element by element or contains
/// IsInf, and NaN if a model contains IsNaN or IsInf. Integers are small if they may become indices, sizes or counts,
/// otherwise up to 1000. If `after` has Graft operators, both their functions and their own kernels are tried.
///
/// NaN and infinite results must agree too; for infinite and NaN inputs only the finite results must agree. A
/// difference beyond the tolerance is judged by how much rounding alone changes `before`. The element types of the
/// outputs, as inferred from the inputs, must be equal.
///
/// The region is not proven if no trial could be run, if the inputs are too large, if outputs depend on random numbers,
/// if an output has no finite number or rounding alone changes it as much as the rewrite, if `before` runs but `after`
/// does not, or if two engines disagree; `text` states the reason. Throws Error if the names of inputs or outputs
/// differ.
[[nodiscard]] ProofResult prove_region(const runtime::Engine& engine, const onnx::Model& before,
                                       const onnx::Model& after, const ProofOptions& options = {});

/// Runs both models of a rewrite that is meant to change the result, on normally distributed values. In the result,
/// `proven` states whether both models run, and `text` describes how far their results differ. Throws Error as
/// prove_region does.
[[nodiscard]] ProofResult measure_region(const runtime::Engine& engine, const onnx::Model& before,
                                         const onnx::Model& after, const ProofOptions& options = {});

}  // namespace graft::verify
