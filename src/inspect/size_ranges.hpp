// Sizes of dynamic dimensions, for the inputs of a model and of its parts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

/// MIN..OPT..MAX of the model's inputs with dynamic dimensions, and of what follows from those.
class SizeRanges {
 public:
  /// `strings` are NAME=MIN..OPT..MAX or NAME=SHAPE. Throws Error for one that is neither, that names no input, or that
  /// contradicts the model.
  SizeRanges(const onnx::Model& model, const std::vector<std::string>& strings);

  /// What the dynamic dimensions of an input in the middle of the model are: what its symbols make them, or all the
  /// same.
  enum class Unknown : std::uint8_t { by_symbol, same };
  /// The same for the inputs of a part of the model.
  [[nodiscard]] std::vector<std::string> of(const onnx::Model& part, Unknown unknown = Unknown::by_symbol) const;
  /// Whether an input of the part has sizes that were not given.
  [[nodiscard]] bool supposes_sizes(const onnx::Model& part) const;

 private:
  using Point = std::map<std::string, std::int64_t, std::less<>>;
  std::map<std::string, std::string, std::less<>> given_;  // by input
  std::set<std::string, std::less<>> inputs_;              // of the model
  std::array<Point, 3> points_;                            // of symbols: smallest, usual, largest
};

}  // namespace graft::inspect
