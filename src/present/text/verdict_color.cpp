// Maps verdicts to green, yellow, red or no color.
#include "present/text/verdict_color.hpp"

namespace graft::present {

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

}  // namespace graft::present
