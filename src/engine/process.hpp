// A child process whose output is read line by line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace graft::engine {

struct ProcessResult {
  int exit_code = 0;
  int signal = 0;  ///< That ended it; 0 where it ended by itself.
};

struct ProcessCallbacks {
  std::function<void(std::string_view line)> on_output;
  std::function<void(std::string_view line)> on_error;
  std::function<bool()> should_stop;  ///< Asked a few times a second; true sends SIGTERM to the child and its children,
                                      ///< after 5 s SIGKILL.
};

/// A child process that is talked to, line by line. It leads a process group, which gets SIGTERM where it outlives this
/// object, after 5 s SIGKILL; the child is waited for.
class ChildProcess {
 public:
  /// Starts `arguments` (the program first, looked up in PATH unless it holds a slash) without a shell. `environment`
  /// holds NAME=value entries that are added to, or replace, this process's own. Throws Error (missing_tool) if the
  /// program cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
               ProcessCallbacks callbacks);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// One line to its standard input. Nothing happens where the child reads no more.
  void write_line(std::string_view line);
  /// Closes its standard input.
  void close_input();
  /// Waits a little for output and hands on what has come; false when both outputs are closed, or the child has ended
  /// and what it left behind holds them open.
  bool read_some();
  /// Its end.
  ProcessResult wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// This process's environment, with NAME=value entries that are added to it or replace its own.
[[nodiscard]] std::vector<std::string> merged_environment(const std::vector<std::string>& changes);

/// Runs a program like ChildProcess, with nothing on its standard input, and waits for its end.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment, const ProcessCallbacks& callbacks);

}  // namespace graft::engine
