// The report of `verify`: whether two models compute the same.
#pragma once

#include <cstdint>
#include <string>

namespace graft::report {

/// The result of a comparison of two tensors or two models.
enum class Verdict : std::uint8_t {
  same,
  different,
  nothing_compared,  ///< No output element was finite in both models, or the outputs are random: nothing is proven.
  disputed,          ///< The CPU engines disagree on one of the models, so there is no verdict on the models.
};

/// Returns "same", "different", "nothing compared" or "disputed".
[[nodiscard]] inline std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "same";
    case Verdict::different: return "different";
    case Verdict::nothing_compared: return "nothing compared";
    case Verdict::disputed: return "disputed";
  }
  return "";
}

}  // namespace graft::report
