// Finds the name for "Did you mean", for programs.
#pragma once

#include "core/suggest.hpp"

namespace graft::toolkit {

using graft::nearest;

}  // namespace graft::toolkit
