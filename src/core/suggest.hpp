// Names the attributes of an operator in the message about an attribute that it does not have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graft/suggest.hpp"

namespace graft {

/// Returns a message such as "Elu has no attribute `aplha` (did you mean `alpha`?); its attributes are alpha", or "...;
/// it has no attributes". If `where` is set, such as " in operator set 17", the attribute exists elsewhere and is not
/// a slip, so no correction is suggested.
[[nodiscard]] std::string no_attribute(std::string_view owner, std::string_view name,
                                       const std::vector<std::string>& known, std::string_view where = {});

}  // namespace graft
