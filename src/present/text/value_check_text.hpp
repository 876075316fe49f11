// The check of values at the end of `graft convert` and `graft quantize`, in words.
#pragma once

#include <string>
#include <string_view>

#include "graft/report/value_check.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns why the check does not accept the model. `reference` names the other model, for example "the f32 one".
[[nodiscard]] std::string missed_check_text(const report::ValueCheck& check, std::string_view reference);

/// Returns the result of the check and the command `verify` that repeats it, if `verify` is not empty. Returns nothing
/// if the models were not compared.
[[nodiscard]] Listing check_text(const report::ValueCheck& check, const std::string& verify);

}  // namespace graft::present
