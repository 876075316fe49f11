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

/// The optimization profile for a model's dynamic inputs and for extracted parts, whose inputs have sizes computed from
/// the dynamic dimensions.
class SizeRanges {
 public:
  /// Parses `strings`, each NAME=MIN..OPT..MAX, NAME=SHAPE or NAME:SHAPE. Throws Error for a string of another form,
  /// for an unknown input, for sizes that the input's shape does not allow, and for two different sizes of one symbol.
  /// If `suggest`, inputs without a range get suggested ranges; otherwise TensorRT reports them as missing.
  SizeRanges(const onnx::Model& model, const std::vector<std::string>& strings, bool suggest = false);

  /// Selects how the dynamic dimensions of a part's input, an inner value of the model, are chosen: computed from their
  /// symbols, or all equal.
  enum class Unknown : std::uint8_t { by_symbol, same };
  /// Returns NAME=MIN..OPT..MAX for each dynamic input of `part`, a model extracted from the whole one. Inputs of the
  /// whole model are included only if their range was given.
  [[nodiscard]] std::vector<std::string> of(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// Returns the result of of() as given ranges and, if suggestions were requested, the selected set of suggestions.
  [[nodiscard]] BuildRanges for_build(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// Returns the number of sets of suggestions; 0 if none were requested.
  [[nodiscard]] std::size_t suggestion_count() const { return suggestions_.size(); }
  /// Returns the index of the selected set of suggestions.
  [[nodiscard]] std::size_t suggestion() const { return suggestion_; }
  /// Returns whether `other`, which has another set of suggestions of the same model selected, has other ranges for the
  /// inputs of `part`.
  [[nodiscard]] bool differs_from(const SizeRanges& other, const onnx::Model& part) const;
  /// Selects a set of suggestions. Set 0 is selected initially.
  void use_suggestion(std::size_t index);
  /// Returns whether `part` has a dynamic input that is neither an input of the whole model nor has a given range, so
  /// that its sizes are assumed.
  [[nodiscard]] bool supposes_sizes(const onnx::Model& part) const;

 private:
  using Point = std::map<std::string, std::int64_t, std::less<>>;
  static void add_symbols(const Shape& shape, const std::array<std::vector<std::int64_t>, 3>& sizes,
                          std::array<Point, 3>& points);
  /// Throws Error if the given ranges set a symbol to two different sizes, in two inputs or in one.
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
