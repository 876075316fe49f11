// Sizes of dynamic dimensions, for the inputs of a model and of its parts.
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

/// MIN..OPT..MAX of the model's inputs with dynamic dimensions, and of what follows from those.
class SizeRanges {
 public:
  /// `strings` are NAME=MIN..OPT..MAX or NAME=SHAPE. Throws Error for one that is neither, that names no input, or that
  /// contradicts the model.
  /// With `suggest`, inputs that they leave out get suggested ranges; without, TensorRT's demand for one is an error.
  SizeRanges(const onnx::Model& model, const std::vector<std::string>& strings, bool suggest = false);

  /// What the dynamic dimensions of an input in the middle of the model are: what its symbols make them, or all the
  /// same.
  enum class Unknown : std::uint8_t { by_symbol, same };
  /// The same for the inputs of a part of the model.
  [[nodiscard]] std::vector<std::string> of(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// The same, with the suggestions for what was not given.
  [[nodiscard]] BuildRanges for_build(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// How many sets of suggestions there are; 0 where none were wanted.
  [[nodiscard]] std::size_t suggestion_count() const { return suggestions_.size(); }
  /// Chooses the set of suggestions that is used from now on; the first is chosen at the start.
  void use_suggestion(std::size_t index);
  /// Whether an input of the part has sizes that were not given.
  [[nodiscard]] bool supposes_sizes(const onnx::Model& part) const;

 private:
  using Point = std::map<std::string, std::int64_t, std::less<>>;
  static void add_symbols(const Shape& shape, const std::array<std::vector<std::int64_t>, 3>& sizes,
                          std::array<Point, 3>& points);
  std::map<std::string, std::string, std::less<>> given_;  // by input
  std::set<std::string, std::less<>> inputs_;              // of the model
  std::array<Point, 3> points_;                            // of symbols: smallest, usual, largest
  std::array<Point, 3> given_points_;                      // those of the given ranges alone
  std::map<std::string, Shape, std::less<>> shapes_;       // of the model's inputs
  std::vector<SuggestedRanges> suggestions_;
  std::size_t suggestion_ = 0;
};

}  // namespace graft::inspect
