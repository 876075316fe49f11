// Proof by running that a rewritten region computes what it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare.hpp"
#include "verify/dispute.hpp"

namespace graft::verify {

struct ProofOptions {
  std::uint64_t seed = 0;
  std::size_t seeds = 2;                    ///< Of each shape and magnitude.
  std::optional<Tolerance> tolerance = {};  ///< Instead of Tolerance::of_rewrite of each output's type.
  /// Of one input; symbolic dimensions are made smaller to stay below. Fixed ones may take 256 times that, of all
  /// inputs.
  std::int64_t max_elements = 1 << 20;
  bool spot_check = false;  ///< Normally distributed numbers and the region's constants at one size alone.
  /// Inputs that have no elements in further runs, of which at least one has to be made. All runs are then those of
  /// Engine::second where there is one.
  std::vector<std::string> emptied = {};
};

struct ProofResult {
  bool proven = false;
  std::size_t trials = 0;   ///< Runs that were compared.
  std::size_t skipped = 0;  ///< Combinations of sizes that `before` itself refuses.
  std::size_t within_noise =
      0;  ///< Trials in which only the noise floor of `before` (NoiseFloor) explains a difference.
  std::size_t without_elements = 0;  ///< Trials in which an input of ProofOptions::emptied had no elements.
  std::string output;                ///< Where the worst difference is.
  Difference worst;
  /// "30 runs, largest difference 1.2e-07 at [1, 5], relative 3e-07 at [0, 2]", or the counter-example: which inputs,
  /// where, which numbers.
  std::string text;
  std::optional<Dispute> dispute = {};  ///< Then it is not proven, and `text` says why.
};

/// A region and its rewrite with sizes of the inputs left open.
struct OpenSizes {
  onnx::Model before;
  onnx::Model after;
  std::vector<std::string> symbols;  ///< Of the sizes that were opened.
  std::int64_t largest_named = 0;    ///< Of the integers that the two name, those that mean "to the end" aside.
};

/// Leaves open the fixed sizes from 9 on that no integer of the two models names, the same symbol for the same size: a
/// network of 224 x 224 is then run on images of a few pixels, and regions that differ in such sizes alone become the
/// same. Nothing where there is no such size, or where the shapes of inner values cannot follow.
[[nodiscard]] std::optional<OpenSizes> with_open_sizes(const onnx::Model& before, const onnx::Model& after);

/// Runs both models, which have the same input and output names, on the same inputs: several sizes of each symbolic
/// dimension (all different, all the same, all 1, one of the first four 1), several seeds, magnitudes from 1e-15 to
/// 1e15 whose squares the types can hold, zeros, ones, negatives, the region's own constants, infinities where each
/// element goes by itself or is asked about, NaN where either model asks for it. Integers are small where they may
/// become indices, sizes or counts, otherwise up to 1000. Where `after` has operators of Graft, both their functions
/// and their own kernels are tried. NaN and infinite results have to agree as well; for infinite and NaN inputs alone
/// only what is finite has to. A difference beyond the tolerance is judged by how far rounding alone takes `before`
/// from itself. Element types of outputs, as they follow from the inputs', have to be the same. Not proven where not a
/// single trial could be run, where the inputs are too large, where outputs depend on random numbers, or where `after`
/// cannot be run but `before` can, or where two engines dispute; `text` says so. Throws Error if the names of inputs or
/// outputs differ.
[[nodiscard]] ProofResult prove_region(const runtime::Engine& engine, const onnx::Model& before,
                                       const onnx::Model& after, const ProofOptions& options = {});

/// For a rewrite that is meant to change the result: `proven` says that both run, `text` how far apart they are on
/// normally distributed numbers. Throws Error as prove_region does.
[[nodiscard]] ProofResult measure_region(const runtime::Engine& engine, const onnx::Model& before,
                                         const onnx::Model& after, const ProofOptions& options = {});

}  // namespace graft::verify
