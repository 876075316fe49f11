// The types that are narrower than f32, by name.
#pragma once

#include <string>

#include "graft/report/precision.hpp"
#include "graft/toolkit/error.hpp"

namespace graft::python {

[[nodiscard]] inline report::Precision precision_of(const std::string& option, const std::string& word) {
  if (const auto precision = report::find_precision(word)) return *precision;
  throw Error(option + ": found " + word + "; allowed are f16 (also called fp16), bf16, int8 and f8 (also called fp8)");
}

}  // namespace graft::python
