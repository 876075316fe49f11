// A child process whose output is read line by line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

struct ProcessResult {
  int exit_code = 0;
  int signal = 0;  ///< That ended it; 0 where it ended by itself.
};

struct ProcessCallbacks {
  std::function<void(std::string_view line)> on_output;
  std::function<void(std::string_view line)> on_error;
  std::function<bool()> should_stop;  ///< Asked a few times a second; true sends SIGTERM to the child.
};

/// Runs `arguments` (the program first, looked up in PATH unless it holds a slash) without a shell, with nothing on its
/// standard input, and waits for its end. `environment` holds NAME=value entries that are added to, or replace, this
/// process's own. Throws Error (missing_tool) if the program cannot be started.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment, const ProcessCallbacks& callbacks);

}  // namespace graft
