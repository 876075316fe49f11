// The layers of an engine in words.
#pragma once

#include "graft/report/build.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the layers with the types that they read and write, and a note for each FloatIsland, a convolution or matrix
/// product that computes in floating point although its inputs are dequantized. Empty if the layers are not known.
[[nodiscard]] Listing engine_layers_text(const report::EngineLayers& engine);

}  // namespace graft::present
