// What the file beside the halves of a network says.
#pragma once

#include <nlohmann/json.hpp>

#include "graft/toolkit/cut.hpp"

namespace graft::toolkit {

/// docs/schema/graft.cut.schema.json.
[[nodiscard]] nlohmann::ordered_json json_of_cut(const CutResult& result, const CutFiles& files);

}  // namespace graft::toolkit
