// The thread that calls looks at the outer token for both.
#include "toolkit/side_by_side.hpp"

#include <chrono>
#include <future>

namespace graft::toolkit {

void run_side_by_side(const std::function<void(const CancelToken&)>& aside, const std::function<void()>& here,
                      CancelToken stop_here, const CancelToken& outer) {
  CancelToken stop_aside;
  std::future<void> other = std::async(std::launch::async, [&] {
    try {
      aside(stop_aside);
    } catch (...) {
      stop_here.cancel();
      throw;
    }
  });
  try {
    here();
  } catch (...) {
    const bool is_aside_first = stop_here.is_cancelled();
    stop_aside.cancel();
    if (is_aside_first) other.get();
    other.wait();
    throw;
  }
  constexpr std::chrono::milliseconds often{100};
  while (other.wait_for(often) == std::future_status::timeout) {
    if (outer.is_cancelled()) stop_aside.cancel();
  }
  other.get();
}

}  // namespace graft::toolkit
