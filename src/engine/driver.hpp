// The engine driver as the command line uses it: `python -m graft.engine`, a process that reports JSON events. So does
// `python -m graft.bench`.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/engine_error.hpp"

namespace graft::engine {

/// Where the driver is. `package_folder` holds the Python package `graft`; empty leaves it to Python to find it.
struct EngineDriver {
  std::filesystem::path python;
  std::filesystem::path package_folder;
  std::string module = "graft.engine";
};

/// Python: the environment's GRAFT_PYTHON, else that of set_python, else the one this program was built with, else
/// python3 on PATH. Package: beside the file that holds this code, as it is built (../python) or installed
/// (../share/graft/python); in a wheel, Python finds it.
/// Throws Error (missing_tool) where there is no Python; its message names the command that installs it.
[[nodiscard]] EngineDriver find_engine_driver();

/// How a module of the package is started in a process: the program with its arguments, and the whole environment.
struct DriverCommand {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};
[[nodiscard]] DriverCommand command_of(const EngineDriver& driver, const std::vector<std::string>& arguments = {});

/// The Python of an application that knows one. Before any other call.
void set_python(const std::filesystem::path& interpreter);

/// The user asked to stop, and the driver has ended.
struct Interrupted {};

struct DriverCallbacks {
  std::function<void(std::string_view phase, double fraction)> on_progress;
  /// Severities: internal_error, error, warning, info, verbose, output.
  std::function<void(std::string_view severity, std::string_view message)> on_log;
  std::function<bool()> should_stop;
};

/// Runs one command of the driver ("build", "plugins", "probe" ...) and returns its result event. Throws EngineError
/// for an error event, Error (missing_tool) where Python does not find the package, Error (internal) where the driver
/// ends without a word, and Interrupted.
[[nodiscard]] nlohmann::json run_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                                        const DriverCallbacks& callbacks = {});

/// A driver that is asked one thing after another (the command "trials").
class DriverSession {
 public:
  DriverSession(const EngineDriver& driver, const std::vector<std::string>& arguments, DriverCallbacks callbacks);
  ~DriverSession();
  DriverSession(const DriverSession&) = delete;
  DriverSession& operator=(const DriverSession&) = delete;

  /// Sends a request and returns the driver's answer event. Throws like run_driver where the driver ends instead.
  [[nodiscard]] nlohmann::json ask(const nlohmann::json& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the file that a shell runs for the name of a program; empty where PATH has none.
[[nodiscard]] std::optional<std::filesystem::path> find_on_path(std::string_view program);

/// The Python environment that a wheel installed this program or libgraft.so into, which then lies in its
/// lib/python3.11/site-packages/graft. Nothing where it comes from elsewhere.
[[nodiscard]] std::optional<std::filesystem::path> environment_of_wheel();

}  // namespace graft::engine
