// Ranges of the dynamic dimensions of a model's inputs, and of the inputs of its parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "inspect/suggested_ranges.hpp"
#include "inspect/trials.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// The optimization profile for the dynamic inputs of a model. It also supplies the profiles of models that are
/// extracted from this model. Their inputs have sizes that are computed from the dynamic dimensions of the whole model.
class SizeRanges {
 public:
  /// Parses `strings`, each NAME=MIN..OPT..MAX, NAME=SHAPE or NAME:SHAPE. Throws Error for a string of another form,
  /// for an unknown input, for sizes that the input's shape does not allow, and for two different sizes of one symbol.
  /// If `suggest`, inputs without a range get suggested ranges; otherwise TensorRT reports them as missing.
  SizeRanges(const onnx::Model& model, const std::vector<std::string>& strings, bool suggest = false);

  /// The sizes that of() assumes for an input of an extracted part that is an inner value of the whole model: sizes
  /// computed from the symbols in its dimensions (by_symbol), or one size for all dynamic dimensions (same).
  enum class Unknown : std::uint8_t { by_symbol, same };
  /// Returns NAME=MIN..OPT..MAX for each dynamic input of `part`, a model extracted from the whole one. An input of the
  /// whole model is included only if the user set its range; for the other inputs, `unknown` selects the sizes.
  [[nodiscard]] std::vector<std::string> of(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// Returns the ranges to build `part` with: the result of of() as the ranges of the user and, if the constructor was
  /// called with `suggest`, the suggested ranges of the selected set.
  [[nodiscard]] BuildRanges for_build(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// Returns the number of sets of suggested ranges; 0 if the constructor was called without `suggest`.
  [[nodiscard]] std::size_t suggestion_count() const { return suggestions_.size(); }
  /// Returns the index of the selected set of suggestions.
  [[nodiscard]] std::size_t suggestion() const { return suggestion_; }
  /// Returns whether this object and `other`, which belongs to the same model and has another set of suggestions
  /// selected, have different ranges for the inputs of `part`.
  [[nodiscard]] bool differs_from(const SizeRanges& other, const onnx::Model& part) const;
  /// Selects a set of suggestions. Set 0 is selected initially.
  void use_suggestion(std::size_t index);
  /// Returns whether the sizes of any input of `part` are assumed: the input is dynamic, is not an input of the whole
  /// model, and the user set no range for it.
  [[nodiscard]] bool supposes_sizes(const onnx::Model& part) const;

 private:
  using Point = std::map<std::string, std::int64_t, std::less<>>;
  static void add_symbols(const Shape& shape, const std::array<std::vector<std::int64_t>, 3>& sizes,
                          std::array<Point, 3>& points);
  /// Throws Error if the user's ranges set a symbol to two different sizes, in two inputs or in one.
  static void check_symbols(const onnx::Model& model, const std::map<std::string, std::string, std::less<>>& given);
  std::map<std::string, std::string, std::less<>> given_;  // maps an input to its range
  std::set<std::string, std::less<>> inputs_;              // the names of the model's inputs
  std::array<Point, 3> points_;                            // maps a symbol to its minimum, optimum and maximum
  std::array<Point, 3> given_points_;                      // the same from the given ranges only
  std::map<std::string, Shape, std::less<>> shapes_;       // maps an input of the model to its shape
  std::vector<SuggestedRanges> suggestions_;
  std::size_t suggestion_ = 0;
};

}  // namespace graft::inspect
