// An engine that runs in a process of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::runtime {

/// How a worker is started.
struct WorkerCommand {
  std::vector<std::string> arguments;         ///< The program's path first.
  std::vector<std::string> environment = {};  ///< All of it, as NAME=value; empty: this process's.
  std::string name = {};                      ///< For messages; empty: the program's path.
  /// Seconds without processor time after which a worker that owes an answer counts as hanging.
  int idle_limit_s = 60;
};

/// Returns the engine of a worker program (src/runtime/worker/main.cpp), which is started when it is first needed. It
/// computes the same numbers and throws the same errors as the engine inside that program. The program gets the loaded
/// libraries of operators as its arguments, and is started again once there are more of them.
///
/// A worker that ends while it is asked something is an EngineLimit, as is every later use of a model that it had
/// compiled; a model that is compiled afterwards gets a new worker. A worker that is stopped or waits for ever is
/// killed (IdleWatch), and has ended then; a run that computes has no limit. In a forked process the engine has a
/// worker of its own, and a model that was compiled before the fork is an Error.
[[nodiscard]] std::unique_ptr<Engine> make_worker_engine(std::string program);

/// Does the same with a program that speaks the protocol of messages.hpp. `find` is called when the worker is first
/// needed, and may throw.
[[nodiscard]] std::unique_ptr<Engine> make_worker_engine(std::function<WorkerCommand()> find);

}  // namespace graft::runtime
