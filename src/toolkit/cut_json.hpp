// The contents of the file that names both halves of a network.
#pragma once

#include <nlohmann/json.hpp>

#include "graft/toolkit/cut.hpp"

namespace graft::toolkit {

/// Returns the JSON of docs/schema/graft.cut.schema.json.
[[nodiscard]] nlohmann::ordered_json json_of_cut(const CutResult& result, const CutFiles& files);

}  // namespace graft::toolkit
