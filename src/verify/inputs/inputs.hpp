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
  /// The elements are selected randomly from those numbers in InputOptions::choices that the type can represent; they
  /// are 0 if it can represent none.
  chosen,
  /// The elements are normally distributed, and every seventh element is infinite. Integer inputs are generated as for
  /// `normal`.
  infinite,
  nan,  ///< The elements are normally distributed, and every seventh element is NaN. Integers are as for `normal`.
  /// The elements are uniformly distributed from -2 to 2, times `scale`, which is fast to generate for large tensors.
  uniform,
};

struct InputOptions {
  std::uint64_t seed = 0;
  InputValues values = InputValues::normal;
  /// The factor for elements of floating-point inputs. Products beyond the range of the type become its largest number.
  double scale = 1;
  /// The names of inputs whose integers are from -1000 to 1000 (0 to 1000 for unsigned types) if the type has 16 bits
  /// or more.
  std::set<std::string, std::less<>> wide_integers = {};
  /// The names of inputs whose integers may have any magnitude up to 2^31 - 1 that the type can represent, and both
  /// signs. The magnitudes are distributed evenly on a logarithmic scale. If an input also has an entry in `ranges`,
  /// the range is used.
  std::set<std::string, std::less<>> large_integers = {};
  /// The exact elements of inputs, by input name. They take precedence over all other options.
  std::map<std::string, std::vector<double>, std::less<>> numbers = {};
  /// The numbers from which elements are selected if `values` is InputValues::chosen.
  std::vector<double> choices = {};
  /// The ranges of inputs, by name. Elements are uniformly distributed over the range if `values` is normal or uniform;
  /// those of integer inputs also if `values` is negative.
  InputRanges ranges = {};
  /// The sizes of symbolic dimensions, by the name of the symbol.
  std::map<std::string, std::int64_t, std::less<>> dims = {};
  /// The complete shapes of inputs, by input name.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};
  /// Whether error messages may advise the user to set `ranges`, which not every command supports.
  bool offers_ranges = false;
  std::int64_t first_size = 2;  ///< The size of a first dimension that no other option sets.
  std::int64_t size = 16;       ///< The size of any other dimension that no other option sets.
};

/// Returns the names of the symbols in a dimension. A dimension without a name has an internal symbol.
[[nodiscard]] std::set<std::string, std::less<>> symbols_of(const Dim& dim);

/// Returns the symbols in the shapes of the inputs, each once, in order of appearance. Dimensions without a name have
/// internal symbols.
[[nodiscard]] std::vector<std::string> symbols_of_inputs(const onnx::Model& model);

/// Returns the names of the inputs that are not used as an index, size or count, so that their integers may be
/// arbitrary. Inputs that a subgraph or an operator outside ai.onnx reads are not returned, because their use is
/// unknown.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_any_integers(const onnx::Model& model);

/// Returns the names of the integer inputs of more than 8 bits that may have large values. Such an input is not used as
/// a size or count, and not read by a subgraph or an operator outside ai.onnx. If it is used as an index or a real
/// number, a Mod, a Clip, a comparison or a conversion to 8 bits bounds it before. The types of all values in the model
/// must be known.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_large_integers(const onnx::Model& model);

/// Returns the names of the inputs from whose integers a model computes sizes, counts or axes.
[[nodiscard]] std::set<std::string, std::less<>> inputs_of_sizes(const onnx::Model& model);

/// Returns, by name, the shape that make_inputs would generate for each input without a default.
[[nodiscard]] std::map<std::string, std::vector<std::int64_t>, std::less<>> input_shapes(const onnx::Model& model,
                                                                                         const InputOptions& options);

/// The maximum total number of elements that make_inputs generates in one call. A limit is needed because a file of a
/// few bytes may declare inputs of any size.
inline constexpr std::int64_t most_synthetic_elements = std::int64_t{1} << 26U;

/// Returns a tensor for each input without a default. The elements depend only on the seed and the input's name. i8 and
/// u8 use their whole range. Other integers, which are mostly indices or counts, are from 0 to 3 unless the input is in
/// `wide_integers`. Booleans use both values. Throws Error for an input whose type or rank is unknown, an input of
/// strings, a name in `shapes` or `dims` that the model does not have, a shape that contradicts the model's, a range
/// that the type cannot represent, and more than `most_synthetic_elements` elements.
[[nodiscard]] runtime::TensorMap make_inputs(const onnx::Model& model, const InputOptions& options = {});

}  // namespace graft::verify
