// The fuzzed code: `graft convert` of a file of one format, within bounds of memory and time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::fuzz {

// Each format defines these two functions.

/// Calls the reader under test, which throws graft::Error for an invalid file. The model must not outlive the bytes.
[[nodiscard]] onnx::Model read(std::string_view bytes);
/// Returns the file with some of its fields changed, or an empty string where it cannot be parsed: see mutate.hpp.
[[nodiscard]] std::string mutate(std::string_view bytes, std::uint64_t seed);

/// Returns an owner for bytes that outlive the model, as those of a mapped file do: readers then leave weights in
/// place, at any address.
[[nodiscard]] inline std::shared_ptr<const void> stay(std::string_view bytes) {
  return {std::shared_ptr<const void>(), bytes.data()};
}

/// Reads a file, infers shapes, runs the passes, writes the model and reads it again. Ends the program where this needs
/// more memory than `memory_limit`, and on any exception but graft::Error about the file.
void run(std::string_view bytes);

}  // namespace graft::fuzz
