// Functions on canaries that only the program calls.
#pragma once

#include <string_view>

#include "graft/toolkit/canary.hpp"
#include "runtime/engine.hpp"
#include "verify/inputs/given_inputs.hpp"

namespace graft::toolkit {

/// Returns the text of templates/canary/run_canary.py. CMake generates the definition.
[[nodiscard]] std::string_view canary_script();

/// Does the same as the public write_canary, with `data` in place of the data in the options; `names` are the names of
/// data and shapes in messages.
[[nodiscard]] CanaryResult write_canary(const Model& model, const std::filesystem::path& folder,
                                        const CanaryOptions& options, runtime::TensorMap data,
                                        const verify::GivenNames& names);

}  // namespace graft::toolkit
