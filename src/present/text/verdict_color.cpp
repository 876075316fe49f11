// Maps verdicts to green, yellow, red or no color.
#include "present/text/verdict_color.hpp"

namespace graft::present {

Color color_of(report::Support verdict) {
  switch (verdict) {
    case report::Support::plugin: return Color::good;
    case report::Support::native:
    case report::Support::lowered: return Color::none;
    case report::Support::unknown:
    case report::Support::not_asked: return Color::caution;
    default: return Color::bad;
  }
}

}  // namespace graft::present
