// Runs two functions at the same time, of which each ends where the other one fails.
#pragma once

#include <functional>

#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// Runs `aside` in another thread and `here` in this one, and returns when both have ended. `aside` gets a token that
/// is cancelled if `here` throws or if `outer` is cancelled. `stop_here` is cancelled if `aside` throws; `here` has to
/// end soon after that, and after `outer` is cancelled. Throws the exception that one of them threw by itself, rather
/// than one that followed from its cancellation.
void run_side_by_side(const std::function<void(const CancelToken&)>& aside, const std::function<void()>& here,
                      CancelToken stop_here, const CancelToken& outer);

}  // namespace graft::toolkit
