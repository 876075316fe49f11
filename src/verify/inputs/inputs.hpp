// Synthetic inputs of a model.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/inputs/input_ranges.hpp"

namespace graft::verify {

enum class InputValues : std::uint8_t {
  normal,    ///< Normally distributed, times `scale`.
  negative,  ///< Normally distributed, times `scale`, with the absolute value negated.
  zeros,
  ones,
  chosen,    ///< Randomly selected from those `choices` that the type holds; 0 if it holds none.
  infinite,  ///< Normally distributed, every seventh element infinite. Integers as for `normal`.
  nan,       ///< Normally distributed, every seventh element NaN. Integers as for `normal`.
  uniform,   ///< Uniformly distributed from -2 to 2, times `scale`: fast to generate for large tensors.
};

struct InputOptions {
  std::uint64_t seed = 0;
  InputValues values = InputValues::normal;
  /// Factor for floating-point inputs. Numbers beyond the range of the type become its largest number.
  double scale = 1;
  /// Inputs whose integers are from -1000 to 1000 (0 to 1000 for unsigned types) if the type has 16 bits or more.
  std::set<std::string, std::less<>> wide_integers = {};
  /// Inputs whose integers are of any size up to 2^31 - 1, as far as the type holds them, and of both signs; all
  /// magnitudes are equally frequent. `ranges` have priority.
  std::set<std::string, std::less<>> large_integers = {};
  /// Inputs with exactly these elements, in this order. They have priority over all other options.
  std::map<std::string, std::vector<double>, std::less<>> numbers = {};
  /// The numbers for InputValues::chosen.
  std::vector<double> choices = {};
  /// Inputs whose numbers, including integers, are uniformly distributed over a range if `values` is normal or uniform;
  /// integers also if `values` is negative.
  InputRanges ranges = {};
  std::map<std::string, std::int64_t, std::less<>> dims = {};  ///< Sizes of symbolic dimensions, by name.
  /// Whole shapes, by the name of the input.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};
  bool offers_ranges = false;   ///< Whether an error may advise to set `ranges`, which not every command can.
  std::int64_t first_size = 2;  ///< Size of a first dimension that no other option sets.
  std::int64_t size = 16;       ///< Size of any other dimension that no other option sets.
};

/// Returns the symbols in a dimension; an unknown dimension has its internal name.
[[nodiscard]] std::set<std::string, std::less<>> symbols_of(const Dim& dim);

/// Returns the symbolic dimensions of the inputs, each once, in order of appearance. Unknown dimensions have their
/// internal names.
[[nodiscard]] std::vector<std::string> symbols_of_inputs(const onnx::Model& model);

/// Returns the inputs that do not become an index, size or count, so that their integers may be arbitrary. Inputs of
/// sub-graphs and of operators outside ai.onnx count as possible indices, sizes or counts.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_any_integers(const onnx::Model& model);

/// Returns the integer inputs of more than 8 bits that may be large. They do not become a size or count, an operand of
/// an operator outside ai.onnx, or an input of a sub-graph. They become an index or a real number only after a Mod, a
/// Clip, a comparison or a conversion to 8 bits has bounded them. The types inside the model must be known.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_large_integers(const onnx::Model& model);

/// Returns the inputs from whose integers a model computes sizes, counts or axes.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_sizes(const onnx::Model& model);

/// Returns the shape of each input without a default, as make_inputs generates it.
[[nodiscard]] std::map<std::string, std::vector<std::int64_t>, std::less<>> input_shapes(const onnx::Model& model,
                                                                                         const InputOptions& options);

/// The largest number of elements that make_inputs generates in one call: a file of a few bytes may declare inputs of
/// any size.
inline constexpr std::int64_t most_synthetic_elements = std::int64_t{1} << 26U;

/// Returns a tensor for each input without a default. The numbers depend only on the seed and the input's name. i8 and
/// u8 use their whole range; other integers, which are mostly indices or counts, 0 to 3 unless they are in
/// `wide_integers`; booleans both values. Throws Error for an input whose type or rank is unknown, an input of strings,
/// a name in `shapes` or `dims` that the model does not have, a shape that contradicts the model's, a range that the
/// type does not hold, and more than `most_synthetic_elements` elements.
[[nodiscard]] runtime::TensorMap make_inputs(const onnx::Model& model, const InputOptions& options = {});

}  // namespace graft::verify
