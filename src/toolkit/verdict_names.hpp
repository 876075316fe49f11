// The names of verdicts on comparisons in Python, reports and JSON.
#pragma once

#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

[[nodiscard]] inline const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "same";
    case Verdict::different: return "different";
    case Verdict::disputed: return "disputed";
    case Verdict::nothing_compared: break;
  }
  return "nothing compared";
}

}  // namespace graft::toolkit
