// Made-up inputs for a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapters/openvino/cpu_engine.hpp"
#include "graph/model.hpp"

namespace graft {

enum class InputValues : std::uint8_t {
  normal,    ///< Normally distributed times `scale`.
  negative,  ///< The same, with its absolute value negated.
  zeros,
  ones,
};

struct InputOptions {
  std::uint64_t seed = 0;
  InputValues values = InputValues::normal;
  double scale = 1;  ///< Of floating-point inputs; numbers beyond the range of the type become its largest.
  std::map<std::string, std::int64_t, std::less<>> dims = {};  ///< Sizes of symbolic dimensions, by name.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes = {};  ///< Whole shapes, by input.
  std::int64_t first_size = 2;  ///< Of a first dimension that nothing above gives a size.
  std::int64_t size = 16;       ///< Of any other such dimension.
};

/// The symbolic dimensions of the inputs, each once, in the order of their appearance; unknown ones under their inner
/// name.
[[nodiscard]] std::vector<std::string> symbols_of_inputs(const Model& model);

/// The shape of each input that has no default, as make_inputs gives it.
[[nodiscard]] std::map<std::string, std::vector<std::int64_t>, std::less<>> input_shapes(const Model& model,
                                                                                         const InputOptions& options);

/// A tensor for each input that has no default. The numbers depend on the seed and the input's name alone. i8 and u8
/// take their whole range; other integers, which are mostly indices or counts, 0 to 3; booleans both values. Throws
/// Error naming an input whose type or rank is unknown, one of text, a name in `shapes` or `dims` that the model does
/// not have, and a shape that contradicts the model's.
[[nodiscard]] TensorMap make_inputs(const Model& model, const InputOptions& options = {});

}  // namespace graft
