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
  int signal = 0;  ///< The signal that ended the process; 0 if it ended by itself.
};

struct ProcessCallbacks {
  std::function<void(std::string_view line)> on_output;
  std::function<void(std::string_view line)> on_error;
  /// Called a few times per second. If it returns true, the child and its children receive SIGTERM, and SIGKILL 5 s
  /// later.
  std::function<bool()> should_stop;
};

/// A child process that exchanges lines of text with this process. It leads its own process group. If it still runs
/// when this object is destroyed, the group receives SIGTERM, and SIGKILL 5 s later; the destructor waits for its end.
class ChildProcess {
 public:
  /// Starts a program without a shell. `arguments` begins with the program, which is looked up in PATH unless it
  /// contains a slash. `environment` contains NAME=value entries that are added to this process's environment or
  /// replace its entries. Throws Error (missing_tool) if the program cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
               ProcessCallbacks callbacks);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Writes one line to the child's standard input. Does nothing if the child no longer reads.
  void write_line(std::string_view line);
  /// Closes the child's standard input.
  void close_input();
  /// Waits up to 100 ms for output and passes complete lines to the callbacks. Returns false if both outputs are
  /// closed, or if the child has ended and only its descendants keep them open.
  bool read_some();
  /// Waits until the child has ended, and returns its exit code or signal.
  ProcessResult wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns this process's environment as NAME=value entries, with the entries in `changes` added or replaced.
[[nodiscard]] std::vector<std::string> merged_environment(const std::vector<std::string>& changes);

/// Runs a program as ChildProcess does, with an empty standard input, and waits for its end.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment, const ProcessCallbacks& callbacks);

}  // namespace graft::engine
