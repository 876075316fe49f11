// Synthetic inputs for a model.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/input_ranges.hpp"

namespace graft::verify {

enum class InputValues : std::uint8_t {
  normal,    ///< Normally distributed times `scale`.
  negative,  ///< The same, with its absolute value negated.
  zeros,
  ones,
  chosen,    ///< Of `choices`, each element any of those that its type holds; 0 where it holds none.
  infinite,  ///< Normally distributed, every seventh element infinite. Integers as for `normal`.
  nan,       ///< Normally distributed, every seventh element not a number. Integers as for `normal`.
  uniform,   ///< Evenly spread over -2 to 2, times `scale`: quickly made, for large tensors.
};

struct InputOptions {
  std::uint64_t seed = 0;
  InputValues values = InputValues::normal;
  double scale = 1;  ///< Of floating-point inputs; numbers beyond the range of the type become its largest.
  /// Inputs whose integers are from -1000 to 1000 (0 to 1000 of unsigned types), where the type holds that.
  std::set<std::string, std::less<>> wide_integers = {};
  /// Inputs whose integers are of any size up to 2^31 - 1, as far as the type holds that, and of both signs: small ones
  /// as often as large ones. `ranges` come first.
  std::set<std::string, std::less<>> large_integers = {};
  /// Inputs whose elements are these, in this order, whatever else is said of them.
  std::map<std::string, std::vector<double>, std::less<>> numbers = {};
  std::vector<double> choices = {};
  /// Inputs whose numbers are evenly spread over a range, integers too, where `values` is normal or uniform;
  /// integers also where it is negative.
  InputRanges ranges = {};
  std::map<std::string, std::int64_t, std::less<>> dims = {};  ///< Sizes of symbolic dimensions, by name.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};  ///< Whole shapes, by input.
  std::int64_t first_size = 2;  ///< Of a first dimension that nothing above gives a size.
  std::int64_t size = 16;       ///< Of any other such dimension.
};

/// The symbols in a dimension; an unknown one is its inner name.
[[nodiscard]] std::set<std::string, std::less<>> symbols_of(const Dim& dim);

/// The symbolic dimensions of the inputs, each once, in the order of their appearance; unknown ones under their inner
/// name.
[[nodiscard]] std::vector<std::string> symbols_of_inputs(const onnx::Model& model);

/// The inputs that become no index, size or count: their integers may be anything. What goes into a sub-graph, or into
/// an operator that is not of ai.onnx, may become one.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_any_integers(const onnx::Model& model);

/// The integer inputs of more than 8 bits that may be large: they become no size, count or operand of an operator that
/// is not of ai.onnx, go into no sub-graph, and become an index or a real number only where they were bounded before,
/// by a Mod, a Clip, a comparison or a conversion to 8 bits. Types inside the model have to be known.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_large_integers(const onnx::Model& model);

/// The shape of each input that has no default, as make_inputs gives it.
[[nodiscard]] std::map<std::string, std::vector<std::int64_t>, std::less<>> input_shapes(const onnx::Model& model,
                                                                                         const InputOptions& options);

/// The most elements that make_inputs makes in one call: a file of a few bytes may declare inputs of any size.
inline constexpr std::int64_t most_synthetic_elements = std::int64_t{1} << 26U;

/// A tensor for each input that has no default. The numbers depend on the seed and the input's name alone. i8 and u8
/// take their whole range; other integers, which are mostly indices or counts, 0 to 3 without `wide_integers`; booleans
/// both values. Throws Error naming an input whose type or rank is unknown, one of text, a name in `shapes` or `dims`
/// that the model does not have, a shape that contradicts the model's, a range that its type does not hold, and more
/// than `most_synthetic_elements`.
[[nodiscard]] runtime::TensorMap make_inputs(const onnx::Model& model, const InputOptions& options = {});

}  // namespace graft::verify
