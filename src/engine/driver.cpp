// Locates the engine driver, runs it, and turns its events into callbacks, a result or an error.
#include "engine/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>

#include "core/executable_folder.hpp"
#include "engine/process.hpp"
#include "graft/setting.hpp"

namespace graft::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto install_python = "Install it with: apt-get install python3 python3-venv, or set GRAFT_PYTHON";

/// Python code that runs the module named in its first argument, like `python -m`. Unlike `-m`, it removes the working
/// directory from sys.path, so that a file json.py there cannot shadow Python's module. (`-P` does the same, but only
/// from Python 3.11 on; `-I` would also ignore the user's settings.)
constexpr auto run_module =
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; import runpy; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)";

/// Returns a colon-separated list of folders without its empty entries, because Python reads an empty entry as the
/// working directory.
std::string without_empty_entries(std::string_view folders) {
  std::string kept;
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    if (end > begin) kept += (kept.empty() ? "" : ":") + std::string(folders.substr(begin, end - begin));
    begin = end + 1;
  }
  return kept;
}

std::string folders_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : without_empty_entries(value);
}

/// Returns a reference to the interpreter that set_python() sets; empty if it was not called.
fs::path& callers_python() {
  static fs::path interpreter;
  return interpreter;
}

std::optional<fs::path> python_of_wheel() {
  const std::optional<fs::path> environment = environment_of_wheel();
  if (!environment) return std::nullopt;
  fs::path python = *environment / "bin" / "python3";
  return is_program(python) ? std::optional(python) : std::nullopt;
}

fs::path find_python() {
  if (const char* chosen = std::getenv("GRAFT_PYTHON"); chosen != nullptr && *chosen != '\0') {
    if (!fs::path(chosen).has_parent_path()) {
      if (const std::optional<fs::path> found = find_on_path(chosen)) return *found;
    } else if (is_program(chosen)) {
      return chosen;
    }
    throw Error(Error::Kind::missing_tool, fmt::format("GRAFT_PYTHON={}: this program does not exist\nSet GRAFT_PYTHON "
                                                       "to the path of a Python 3.10 or later, or unset it",
                                                       chosen));
  }
  if (is_program(callers_python())) return callers_python();
  if (const std::optional<fs::path> found = python_of_wheel()) return *found;
  if (is_program(GRAFT_BUILD_PYTHON)) return GRAFT_BUILD_PYTHON;
  if (const std::optional<fs::path> found = find_on_path("python3")) return *found;
  throw Error(
      Error::Kind::missing_tool,
      fmt::format("no Python was found; Graft needs Python to run TensorRT and ONNX Runtime\n{}", install_python));
}

fs::path find_package() {
  for (const char* relative : {"../python", "../share/graft/python", "../../share/graft/python"}) {
    const fs::path folder = executable_folder() / relative;
    std::error_code ignored;
    if (fs::is_directory(folder / "graft" / "engine", ignored)) return fs::weakly_canonical(folder, ignored);
  }
  return {};
}

Error::Kind kind_of_exit_code(int code) {
  switch (code) {
    case 1: return Error::Kind::answer_is_no;
    case 2: return Error::Kind::bad_input;
    case 3: return Error::Kind::missing_tool;
    default: return Error::Kind::internal;
  }
}

std::string text_of(const json& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Returns the members of an error event other than kind, message, next step and exit code, as a JSON string.
std::string facts_of(json event) {
  for (const char* name : {"event", "kind", "message", "next_step", "exit_code"}) event.erase(name);
  return event.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The last result, answer and error event that the driver has sent, and its last 20 other lines.
struct Conversation {
  json result;
  json answer;
  json error;
  bool any_event = false;
  std::deque<std::string> other_lines;  // Lines from standard error, and lines that are not events.

  void keep(std::string_view line) {
    constexpr std::size_t most = 20;
    other_lines.emplace_back(line);
    if (other_lines.size() > most) other_lines.pop_front();
  }

  void on_line(std::string_view line, const DriverCallbacks& callbacks) {
    json event = json::parse(line, nullptr, false);
    if (!event.is_object() || !event.contains("event")) {
      keep(line);
      return;
    }
    any_event = true;
    const std::string kind = text_of(event, "event");
    if (kind == "progress") {
      if (callbacks.on_progress) callbacks.on_progress(text_of(event, "phase"), event.value("fraction", 0.0));
    } else if (kind == "log") {
      if (callbacks.on_log) callbacks.on_log(text_of(event, "severity"), text_of(event, "message"));
    } else if (kind == "result") {
      result = std::move(event);
    } else if (kind == "answer") {
      answer = std::move(event);
    } else if (kind == "error") {
      error = std::move(event);
    }
  }

  [[nodiscard]] std::string last_lines() const {
    std::string text;
    for (const std::string& line : other_lines) text += "\n" + line;
    return text;
  }

  /// Returns "No module named 'x'" from the Python error about a missing module in the driver's last lines, or an empty
  /// string.
  [[nodiscard]] std::string missing_module() const {
    for (auto line = other_lines.rbegin(); line != other_lines.rend(); ++line) {
      const std::size_t begin = line->find("No module named");
      if (begin != std::string::npos) return line->substr(begin, line->find(')', begin) - begin);
    }
    return "";
  }
};

std::vector<std::string> driver_command(const EngineDriver& driver, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{driver.python.string(), "-c", run_module, driver.module};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

/// The settings by the names that the driver uses in its messages. These names are replaced by setting_name().
constexpr auto driver_settings = std::to_array<std::pair<const char*, Setting>>({
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) {driver_option, Setting::setting},
#include "graft/settings.inc"
#undef GRAFT_SETTING
});

/// Returns a JSON object that maps each setting name in the driver's messages to the name that the application uses.
std::string option_names() {
  json names = json::object();
  for (const auto& [option, setting] : driver_settings) {
    if (*option != '\0') names[option] = setting_name(setting);
  }
  return names.dump();
}

std::vector<std::string> driver_environment(const EngineDriver& driver) {
  std::vector<std::string> changes;
  const std::string own = driver.package_folder.string();
  const std::string given = folders_in("PYTHONPATH");
  changes.push_back("GRAFT_OPTION_NAMES=" + option_names());
  changes.push_back("PYTHONPATH=" + own + (own.empty() || given.empty() ? "" : ":") + given);
  // In LD_LIBRARY_PATH, too, an empty entry stands for the working directory.
  if (std::getenv("LD_LIBRARY_PATH") != nullptr) changes.push_back("LD_LIBRARY_PATH=" + folders_in("LD_LIBRARY_PATH"));
  return changes;
}

/// Call it after the driver has ended. Throws the error that the driver reported. If the driver reported neither an
/// error nor a result, throws an error that states how the process ended.
void check_end(const EngineDriver& driver, const Conversation& said, const ProcessResult& ended) {
  if (said.error.is_object()) {
    const int code = said.error.value("exit_code", ended.exit_code);
    throw EngineError(kind_of_exit_code(code), {.kind = text_of(said.error, "kind"),
                                                .message = text_of(said.error, "message"),
                                                .next_step = text_of(said.error, "next_step"),
                                                .library = text_of(said.error, "library"),
                                                .cause = text_of(said.error, "cause"),
                                                .facts = facts_of(said.error)});
  }
  if (said.result.is_object() && ended.signal == 0 && ended.exit_code == 0) return;

  const char* chosen = std::getenv("GRAFT_PYTHON");
  const bool is_chosen = chosen != nullptr && *chosen != '\0';
  if (const std::string missing = said.missing_module(); !missing.empty()) {
    throw Error(Error::Kind::missing_tool,
                fmt::format("{} cannot import {}, Graft's engine driver: {}\n{} to a Python that has this module, or "
                            "set PYTHONPATH to the folder that contains it; `make build` writes the package graft to "
                            "build/python",
                            driver.python.string(), driver.module, missing,
                            is_chosen ? "Unset GRAFT_PYTHON, set it" : "Set GRAFT_PYTHON"));
  }
  const std::string rest = said.last_lines();
  if (!said.any_event && ended.signal == 0 && is_chosen) {
    throw Error(
        Error::Kind::missing_tool,
        fmt::format("GRAFT_PYTHON={}: this program cannot run Graft's engine driver and ended with exit code {}\nSet "
                    "GRAFT_PYTHON to a Python 3.10 or later in which TensorRT is installed, or unset it{}",
                    chosen, ended.exit_code, rest));
  }
  const std::string how =
      ended.signal != 0 ? fmt::format("by signal {}", ended.signal) : fmt::format("with exit code {}", ended.exit_code);
  throw Error(Error::Kind::internal, fmt::format("{} ended {} without a result{}", driver.module, how, rest));
}

}  // namespace

std::optional<fs::path> environment_of_wheel() {
  const fs::path package = executable_folder().parent_path();
  std::error_code ignored;
  // The installation folder itself may be named graft.
  if (package.filename() != "graft" || !fs::is_directory(package / "engine", ignored)) return std::nullopt;
  return package.parent_path().parent_path().parent_path().parent_path();
}

std::optional<fs::path> find_on_path(std::string_view program) {
  const std::string path = folders_in("PATH");
  std::string_view folders = path;
  while (!folders.empty()) {
    const std::size_t end = folders.find(':');
    fs::path candidate = fs::path(folders.substr(0, end)) / program;
    if (is_program(candidate)) return candidate;
    folders = end == std::string_view::npos ? "" : folders.substr(end + 1);
  }
  return std::nullopt;
}

void set_python(const fs::path& interpreter) { callers_python() = interpreter; }

EngineDriver find_engine_driver() { return {.python = find_python(), .package_folder = find_package()}; }

DriverCommand command_of(const EngineDriver& driver, const std::vector<std::string>& arguments) {
  return {.arguments = driver_command(driver, arguments),
          .environment = merged_environment(driver_environment(driver))};
}

json run_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                const DriverCallbacks& callbacks) {
  Conversation said;
  bool stopped = false;
  const ProcessResult ended = run_process(
      driver_command(driver, arguments), driver_environment(driver),
      {.on_output = [&](std::string_view line) { said.on_line(line, callbacks); },
       .on_error = [&](std::string_view line) { said.keep(line); },
       .should_stop = [&] { return stopped = stopped || (callbacks.should_stop && callbacks.should_stop()); }});
  if (stopped) throw Interrupted{};
  check_end(driver, said, ended);
  return said.result;
}

struct DriverSession::State {
  State(const EngineDriver& its_driver, const std::vector<std::string>& arguments, DriverCallbacks given)
      : driver(its_driver),
        callbacks(std::move(given)),
        child(driver_command(driver, arguments), driver_environment(driver),
              {.on_output = [this](std::string_view line) { said.on_line(line, callbacks); },
               .on_error = [this](std::string_view line) { said.keep(line); },
               .should_stop =
                   [this] { return stopped = stopped || (callbacks.should_stop && callbacks.should_stop()); }}) {}
  EngineDriver driver;
  DriverCallbacks callbacks;
  Conversation said;
  bool stopped = false;
  ChildProcess child;
};

DriverSession::DriverSession(const EngineDriver& driver, const std::vector<std::string>& arguments,
                             DriverCallbacks callbacks)
    : state_(std::make_unique<State>(driver, arguments, std::move(callbacks))) {}

DriverSession::~DriverSession() = default;

json DriverSession::ask(const json& request) {
  state_->said.answer = nullptr;
  state_->child.write_line(request.dump());
  while (state_->child.read_some() && !state_->said.answer.is_object()) {
  }
  if (state_->stopped) throw Interrupted{};
  if (!state_->said.answer.is_object()) {
    check_end(state_->driver, state_->said, state_->child.wait());
    throw Error(Error::Kind::internal, fmt::format("{} ended without an answer", state_->driver.module));
  }
  return std::move(state_->said.answer);
}

}  // namespace graft::engine
