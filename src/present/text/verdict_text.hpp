// The colors and meanings of verdicts on nodes.
#pragma once

#include <string>

#include "graft/report/inspect.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns the color of a verdict: green for plugins, yellow for unknown, red for nodes that do not run, and no color
/// for native and lowered nodes.
[[nodiscard]] Color color_of(report::Support verdict);

/// Returns a description of a verdict, such as "TensorRT runs it as it is". With `by_rules`, TensorRT was not run on
/// the model, and the description claims only what the rules say. `release` is the title of the release that the user
/// named; the installed TensorRT may be another one. It is empty if the user named none.
[[nodiscard]] std::string meaning_of(report::Support verdict, bool by_rules = false, const std::string& release = {});

}  // namespace graft::present
