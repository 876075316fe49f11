// graft_engine_worker [OPERATOR-LIBRARY...]: runs OpenVINO in a separate process for make_worker_engine().
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <span>

#include "core/descriptor.hpp"
#include "graft/setting.hpp"
#include "operator_library/load.hpp"
#include "runtime/openvino/openvino_engine.hpp"
#include "runtime/worker/messages.hpp"
#include "runtime/worker/serve.hpp"

/// Replaces malloc_trim of the C library, which OpenVINO calls after each compilation, by a function that returns no
/// pages to the system. The next compilation needs these pages again: with this function `convert` takes 10 % less time
/// (18 networks, 2 cores).
extern "C" __attribute__((visibility("default"))) int malloc_trim(std::size_t /*kept_bytes*/) { return 0; }

int main(int argc, char** argv) {
  struct ::stat input {};
  if (::fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
    std::cerr << "graft_engine_worker: do not start this program yourself; Graft starts it with a socket as its "
                 "standard input\n";
    return 2;
  }
  graft::set_setting_names(graft::runtime::mark_of);
  const auto make_engine = [&]() -> const graft::runtime::Engine& {
    for (const char* library : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
      (void)graft::load_operator_library(library);
    }
    return graft::runtime::openvino_engine();
  };
  graft::runtime::serve(make_engine, graft::Descriptor(STDIN_FILENO));
  // Other threads may still be computing, but no process waits for their results.
  std::_Exit(0);
}
