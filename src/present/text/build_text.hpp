// The result of `graft build` in words.
#pragma once

#include <string>

#include "graft/report/build.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the written engine, its targets, inputs, outputs and layers, and its plugins with the reason for each.
[[nodiscard]] Listing build_text(const report::BuildReport& report);

/// Returns a warning for the nodes that TensorRT is known to compute wrongly, with the command that rewrites the model;
/// empty if there are none.
[[nodiscard]] std::string computed_wrongly_text(const report::BuildReport& report);

}  // namespace graft::present
