// Runs the engine driver, `python -m graft.engine`, in a child process that reports JSON events. `python -m
// graft.bench` runs in the same way.
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

/// The Python interpreter and the module that implement a driver. `package_folder` is the folder that contains the
/// Python package `graft`; if it is empty, Python searches for the package.
struct EngineDriver {
  std::filesystem::path python;
  std::filesystem::path package_folder;
  std::string module = "graft.engine";

  /// Returns the command as text for messages: "/usr/bin/python3 -m graft.engine".
  [[nodiscard]] std::string command_text() const { return python.string() + " -m " + module; }
};

/// Returns the driver of this installation. The interpreter is the first that exists of: the environment variable
/// GRAFT_PYTHON, the interpreter passed to set_python, the interpreter of the wheel's environment, the interpreter with
/// which this program was built, and python3 on PATH. The package folder is ../python (build) or ../share/graft/python
/// (installation), relative to the file that contains this code; in a wheel it is empty. Throws Error (missing_tool) if
/// there is no Python, or if GRAFT_PYTHON is not a program.
[[nodiscard]] EngineDriver find_engine_driver();

/// The command that starts a module of the package: the program with its arguments, and its complete environment.
struct DriverCommand {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};
[[nodiscard]] DriverCommand command_of(const EngineDriver& driver, const std::vector<std::string>& arguments = {});

/// Sets the Python interpreter to use, for an application that is itself a Python program. Must be called before the
/// other functions.
void set_python(const std::filesystem::path& interpreter);

/// Thrown by run_driver and DriverSession if the user stopped the command. The driver has ended by then.
struct Interrupted {};

struct DriverCallbacks {
  std::function<void(std::string_view phase, double fraction)> on_progress;
  /// Receives each message that the driver logs. `severity` is internal_error, error, warning, info, verbose or output.
  std::function<void(std::string_view severity, std::string_view message)> on_log;
  std::function<bool()> should_stop;
};

/// Runs one command of the driver ("build", "plugins", "probe" ...) and returns its result event. Throws EngineError if
/// the driver reports an error, Error (missing_tool) if Python does not find the package, Error (internal) if the
/// driver ends without a result, and Interrupted if the user stopped it.
[[nodiscard]] nlohmann::json run_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                                        const DriverCallbacks& callbacks = {});

/// A driver process that answers several requests one after the other, with the driver command "trials".
class DriverSession {
 public:
  DriverSession(const EngineDriver& driver, const std::vector<std::string>& arguments, DriverCallbacks callbacks);
  ~DriverSession();
  DriverSession(const DriverSession&) = delete;
  DriverSession& operator=(const DriverSession&) = delete;

  /// Sends a request and returns the driver's reply. Throws as run_driver does if the driver ends without a reply.
  [[nodiscard]] nlohmann::json ask(const nlohmann::json& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the path of the program that a shell would run for this name, or nothing if PATH has no such program.
[[nodiscard]] std::optional<std::filesystem::path> find_on_path(std::string_view program);

/// Returns the root folder of the Python environment if this program or libgraft.so was installed from a wheel, that
/// is, if it is in lib/pythonX.Y/site-packages/graft of an environment. Otherwise returns nothing.
[[nodiscard]] std::optional<std::filesystem::path> environment_of_wheel();

}  // namespace graft::engine
