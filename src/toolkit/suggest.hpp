// "Did you mean", for what is typed.
#pragma once

#include "core/suggest.hpp"

namespace graft::toolkit {

using graft::nearest;

}  // namespace graft::toolkit
