// What is fuzzed: a file of one format on the whole way that `graft convert` goes, within bounds of memory and time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::fuzz {

// Each format defines these two.

/// The reader under test. Errors of the file come out as graft::Error. The model is not to outlive the bytes.
[[nodiscard]] onnx::Model read(std::string_view bytes);
/// The file with some of its fields changed, or nothing where it cannot be parsed: see mutate.hpp.
[[nodiscard]] std::string mutate(std::string_view bytes, std::uint64_t seed);

/// What the readers take as the owner of bytes that outlive the model, as a mapped file does: weights then stay where
/// they are, at any address.
[[nodiscard]] inline std::shared_ptr<const void> stay(std::string_view bytes) {
  return {std::shared_ptr<const void>(), bytes.data()};
}

/// Reads, infers shapes, runs the passes, writes and reads again. Ends the program where the way to the finished model
/// takes more memory than `memory_limit`, and on any exception but an Error of the file's.
void run(std::string_view bytes);

}  // namespace graft::fuzz
