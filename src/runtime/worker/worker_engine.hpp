// An engine that runs in a separate process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::runtime {

/// The command that starts a worker.
struct WorkerCommand {
  std::vector<std::string> arguments;  ///< The path of the program, then its arguments.
  /// The whole environment as NAME=value; if empty, the environment of this process.
  std::vector<std::string> environment = {};
  std::string name = {};  ///< The name for messages; if empty, the path of the program.
  /// Seconds without processor time after which a worker that has not replied counts as hanging.
  int idle_limit_s = 60;
};

/// Returns the engine of a worker program (src/runtime/worker/main.cpp), which is started when it is first needed. It
/// computes the same values and throws the same errors as the engine inside that program. The program receives the
/// loaded operator libraries as arguments and is restarted when further libraries are loaded.
///
/// A worker that ends during a request causes an EngineLimit, as does every later use of a model that it had compiled;
/// a model that is compiled afterwards gets a new worker. A worker that is stopped or waits forever is killed
/// (IdleWatch) and counts as ended; a run that computes has no time limit. A forked process starts its own worker, and
/// a model that was compiled before the fork throws an Error.
[[nodiscard]] std::unique_ptr<Engine> make_worker_engine(std::string program);

/// Returns the engine of any program that implements the protocol of messages.hpp. `find` is called when the worker is
/// first needed, and may throw.
[[nodiscard]] std::unique_ptr<Engine> make_worker_engine(std::function<WorkerCommand()> find);

}  // namespace graft::runtime
