// Plugins made as TensorRT makes them from an engine: by their creators, from serialized fields.
#pragma once

#include "tests/fuzz/taken_bytes.hpp"

namespace graft::fuzz {

/// Chooses a creator, an operator's own or one under which it stands in for another library's plugin, hands it fields
/// of any name, type, length and data, and asks a plugin that it makes what TensorRT asks. Ends the program where what
/// a plugin serializes makes no plugin again.
void create_plugin(TakenBytes& bytes);

}  // namespace graft::fuzz
