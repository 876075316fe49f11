// graft_engine_worker: OpenVINO in a process of its own, for make_worker_engine().
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "core/descriptor.hpp"
#include "runtime/openvino/openvino_engine.hpp"
#include "runtime/worker/serve.hpp"

int main() {
  struct ::stat input {};
  if (::fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
    std::cerr << "graft_engine_worker: Graft starts this program, with a socket as its standard input\n";
    return 2;
  }
  graft::runtime::serve(graft::runtime::openvino_engine(), graft::Descriptor(STDIN_FILENO));
  // A thread that still computes computes for no one.
  std::_Exit(0);
}
