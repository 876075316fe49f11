// The layers of an engine in words.
#pragma once

#include "graft/report/build.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the layers with the types that they read and write, and a note for each island of f32. Empty if the layers
/// are not known.
[[nodiscard]] Listing engine_layers_text(const report::EngineLayers& engine);

}  // namespace graft::present
