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

/// The ranges of a model's inputs with dynamic dimensions, and of the sizes computed from these dimensions.
class SizeRanges {
 public:
  /// Parses `strings`, each NAME=MIN..OPT..MAX, NAME=SHAPE or NAME:SHAPE. Throws Error for a string of another form,
  /// for an unknown input, and for sizes that the inputs cannot have, also those that give one symbol two sizes. With
  /// `suggest`, inputs without a range get suggested ranges; without it, a range that TensorRT misses is an error.
  SizeRanges(const onnx::Model& model, const std::vector<std::string>& strings, bool suggest = false);

  /// How the dynamic dimensions of an input in the middle of the model are chosen: computed from their symbols, or all
  /// with the same size.
  enum class Unknown : std::uint8_t { by_symbol, same };
  /// Returns NAME=MIN..OPT..MAX for the inputs of a part of the model. Inputs of the model itself are included only if
  /// their range was given.
  [[nodiscard]] std::vector<std::string> of(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// Returns the ranges of of(), and the current set of suggestions if suggestions were requested.
  [[nodiscard]] BuildRanges for_build(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// Returns the number of sets of suggestions; 0 if none were requested.
  [[nodiscard]] std::size_t suggestion_count() const { return suggestions_.size(); }
  /// Returns the index of the set of suggestions in use.
  [[nodiscard]] std::size_t suggestion() const { return suggestion_; }
  /// Returns whether `other`, another set of suggestions for the same model, has other ranges for the inputs of a part.
  [[nodiscard]] bool differs_from(const SizeRanges& other, const onnx::Model& part) const;
  /// Selects the set of suggestions that is used from now on. The constructor selects set 0.
  void use_suggestion(std::size_t index);
  /// Returns whether the part has an input with dynamic dimensions that is not an input of the model and has no given
  /// range, so that its sizes are assumed.
  [[nodiscard]] bool supposes_sizes(const onnx::Model& part) const;

 private:
  using Point = std::map<std::string, std::int64_t, std::less<>>;
  static void add_symbols(const Shape& shape, const std::array<std::vector<std::int64_t>, 3>& sizes,
                          std::array<Point, 3>& points);
  /// Throws Error if the ranges of two inputs, or one range, give a symbol two sizes.
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
