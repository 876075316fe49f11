// Counts the nodes that were left out.
#include "import/origin.hpp"

#include <algorithm>

namespace graft {

void Origin::leave_out(std::string_view op, std::string_view why) {
  const auto same = std::find_if(left_out.begin(), left_out.end(),
                                 [&](const LeftOut& entry) { return entry.op == op && entry.why == why; });
  if (same != left_out.end()) {
    ++same->count;
  } else {
    left_out.push_back({.op = std::string(op), .why = std::string(why), .count = 1});
  }
}

}  // namespace graft
