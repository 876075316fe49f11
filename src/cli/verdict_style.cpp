// One color for what runs as a plugin, one for what does not run, one for what is not known.
#include "cli/verdict_style.hpp"

#include <optional>

namespace graft::cli {

Color color_of(inspect::Verdict verdict) {
  using inspect::Verdict;
  switch (verdict) {
    case Verdict::plugin: return Color::good;
    case Verdict::native:
    case Verdict::lowered: return Color::none;
    case Verdict::unknown:
    case Verdict::not_asked: return Color::caution;
    default: return Color::bad;
  }
}

Json json_of_runs(const std::vector<inspect::NodeVerdict>& nodes) {
  const std::optional<bool> known = inspect::runs(nodes);
  return known ? Json(*known) : Json();
}

}  // namespace graft::cli
