// The check of values that `convert` and `quantize` end with, in words.
#pragma once

#include <string>
#include <string_view>

#include "present/text/listing.hpp"
#include "toolkit/value_check.hpp"

namespace graft::present {

/// Why the check does not accept the model. `reference` is what it was compared with, as "the f32 one".
[[nodiscard]] std::string missed_check_text(const toolkit::ValueCheck& check, std::string_view reference);

/// Says what the check found, and which command repeats it, unless that is empty. Empty where nothing was compared.
[[nodiscard]] Listing check_text(const toolkit::ValueCheck& check, const std::string& verify);

}  // namespace graft::present
