// Counting and naming in reports.
#include "passes/report.hpp"

#include <algorithm>

namespace graft::passes {

std::string_view to_string(OperatorChoice::Kind kind) {
  switch (kind) {
    case OperatorChoice::Kind::native: return "native";
    case OperatorChoice::Kind::plugin: return "plugin";
    case OperatorChoice::Kind::function: return "function";
  }
  return "";
}

std::size_t ConvertReport::count(std::string_view pass) const {
  return static_cast<std::size_t>(
      std::count_if(rewrites.begin(), rewrites.end(), [&](const Rewrite& rewrite) { return rewrite.pass == pass; }));
}

std::string_view to_string(ProofKind kind) {
  switch (kind) {
    case ProofKind::own: return "own";
    case ProofKind::spot_check: return "spot check";
    case ProofKind::one_of_a_kind: return "one of a kind";
  }
  return "";
}

}  // namespace graft::passes
