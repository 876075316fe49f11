// What the program calls of canaries.
#pragma once

#include <string_view>

#include "graft/toolkit/canary.hpp"
#include "runtime/engine.hpp"
#include "verify/inputs/given_inputs.hpp"

namespace graft::toolkit {

/// templates/canary/run_canary.py. Defined by the build.
[[nodiscard]] std::string_view canary_script();

/// The public function, with `data` in place of that in the options, and what messages call data and shapes.
[[nodiscard]] CanaryResult write_canary(const Model& model, const std::filesystem::path& folder,
                                        const CanaryOptions& options, runtime::TensorMap data,
                                        const verify::GivenNames& names);

}  // namespace graft::toolkit
