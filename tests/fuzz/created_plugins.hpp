// Creates plugins as TensorRT does for an engine: by their creators, from serialized fields.
#pragma once

#include "tests/fuzz/taken_bytes.hpp"

namespace graft::fuzz {

/// Selects a creator of an operator or of a plugin that it replaces, passes it fields of any name, type, length and
/// data, and makes TensorRT's calls on the plugin that it creates. Ends the program where the serialized fields of a
/// plugin do not create a plugin again.
void create_plugin(TakenBytes& bytes);

}  // namespace graft::fuzz
