// Generates synthetic inputs for a model.
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
  normal,    ///< The elements are normally distributed, times `scale`.
  negative,  ///< The elements are normally distributed, times `scale`, and then made negative.
  zeros,
  ones,
  /// The elements are selected randomly from those `choices` that the type can represent; 0 if it can represent none of
  /// them.
  chosen,
  /// The elements are normally distributed, and every seventh element is infinite. Integers are as for `normal`.
  infinite,
  nan,  ///< The elements are normally distributed, and every seventh element is NaN. Integers are as for `normal`.
  /// The elements are uniformly distributed from -2 to 2, times `scale`, which is fast to generate for large tensors.
  uniform,
};

struct InputOptions {
  std::uint64_t seed = 0;
  InputValues values = InputValues::normal;
  /// The factor for floating-point inputs. Numbers beyond the range of the type become its largest number.
  double scale = 1;
  /// The names of inputs whose integers are from -1000 to 1000 (0 to 1000 for unsigned types) if the type has 16 bits
  /// or more.
  std::set<std::string, std::less<>> wide_integers = {};
  /// The names of inputs whose integers may have any magnitude up to 2^31 - 1 that the type can represent, and both
  /// signs. All magnitudes are equally frequent. `ranges` have priority.
  std::set<std::string, std::less<>> large_integers = {};
  /// The exact elements of inputs, by input name. They have priority over all other options.
  std::map<std::string, std::vector<double>, std::less<>> numbers = {};
  /// The values for InputValues::chosen.
  std::vector<double> choices = {};
  /// The ranges of inputs over which their elements, including integers, are uniformly distributed if `values` is
  /// normal or uniform; integers also if `values` is negative.
  InputRanges ranges = {};
  /// The sizes of symbolic dimensions, by the name of the symbol.
  std::map<std::string, std::int64_t, std::less<>> dims = {};
  /// The complete shapes of inputs, by input name.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};
  /// Whether an error message may suggest to set `ranges`, which not every command supports.
  bool offers_ranges = false;
  std::int64_t first_size = 2;  ///< The size of a first dimension that no other option sets.
  std::int64_t size = 16;       ///< The size of any other dimension that no other option sets.
};

/// Returns the symbols in a dimension; an unknown dimension has its internal name.
[[nodiscard]] std::set<std::string, std::less<>> symbols_of(const Dim& dim);

/// Returns the symbolic dimensions of the inputs, each once, in order of appearance. Unknown dimensions have their
/// internal names.
[[nodiscard]] std::vector<std::string> symbols_of_inputs(const onnx::Model& model);

/// Returns the inputs that are not used as an index, size or count, so that their integers may be arbitrary. Inputs of
/// subgraphs and of operators outside ai.onnx count as possible indices, sizes or counts.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_any_integers(const onnx::Model& model);

/// Returns the integer inputs of more than 8 bits that may have large values. They are not used as a size or count, an
/// operand of an operator outside ai.onnx, or an input of a subgraph. They are used as an index or a real number only
/// after a Mod, a Clip, a comparison or a conversion to 8 bits has bounded them. The types inside the model must be
/// known.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_large_integers(const onnx::Model& model);

/// Returns the inputs from whose integers a model computes sizes, counts or axes.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_sizes(const onnx::Model& model);

/// Returns the shape of each input without a default, as make_inputs generates it.
[[nodiscard]] std::map<std::string, std::vector<std::int64_t>, std::less<>> input_shapes(const onnx::Model& model,
                                                                                         const InputOptions& options);

/// The largest number of elements that make_inputs generates in one call. The limit is needed because a file of a few
/// bytes may declare inputs of any size.
inline constexpr std::int64_t most_synthetic_elements = std::int64_t{1} << 26U;

/// Returns a tensor for each input without a default. The elements depend only on the seed and the input's name. i8 and
/// u8 use their whole range. Other integers, which are mostly indices or counts, are from 0 to 3 unless the input is in
/// `wide_integers`. Booleans use both values. Throws Error for an input whose type or rank is unknown, an input of
/// strings, a name in `shapes` or `dims` that the model does not have, a shape that contradicts the model's, a range
/// that the type cannot represent, and more than `most_synthetic_elements` elements.
[[nodiscard]] runtime::TensorMap make_inputs(const onnx::Model& model, const InputOptions& options = {});

}  // namespace graft::verify
