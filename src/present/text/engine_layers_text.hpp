// An engine's layers in words.
#pragma once

#include <string>

#include "engine/engine_layers.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// The layers, what they read, and a note for each island of f32. Empty where they are not known.
[[nodiscard]] Listing engine_layers_text(const engine::EngineLayers& engine);

}  // namespace graft::present
