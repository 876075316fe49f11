// Writes the value of the member "runs".
#include "present/json/verdicts.hpp"

#include <optional>

namespace graft::present {

Json json_of_runs(const std::vector<report::NodeSupport>& nodes) {
  const std::optional<bool> known = inspect::runs(nodes);
  return known ? Json(*known) : Json();
}

}  // namespace graft::present
