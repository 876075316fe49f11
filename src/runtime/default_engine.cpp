// Locates the worker program of this installation.
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

/// Returns the path of the worker program, or an empty path if it does not exist.
fs::path find_worker() {
  if (const char* const chosen = std::getenv("GRAFT_ENGINE_WORKER"); chosen != nullptr && *chosen != '\0')
    return chosen;
  // Searches relative to bin and lib, and to the folders one level below them, such as lib/x86_64-linux-gnu.
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
