// Finds the worker program.
#include "runtime/default_engine.hpp"

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "core/executable_folder.hpp"
#include "runtime/null/null_engine.hpp"
#include "runtime/worker/worker_engine.hpp"

namespace graft::runtime {
namespace {

namespace fs = std::filesystem;

/// Returns an empty path where there is no such program.
fs::path find_worker() {
  if (const char* const chosen = std::getenv("GRAFT_ENGINE_WORKER"); chosen != nullptr && *chosen != '\0')
    return chosen;
  // From bin and lib, and from the folders one level below those, such as lib/x86_64-linux-gnu.
  for (const char* const relative : {"../libexec", "../../libexec"}) {
    const fs::path program = executable_folder() / relative / "graft_engine_worker";
    if (is_program(program)) return program.lexically_normal();
  }
  return {};
}

}  // namespace

const Engine& default_engine() {
  static const std::unique_ptr<Engine> worker = [] {
    const fs::path program = find_worker();
    return program.empty() ? nullptr : make_worker_engine(program.string());
  }();
  return worker ? *worker : null_engine();
}

}  // namespace graft::runtime
