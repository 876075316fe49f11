// Runs the process in which TensorRT runs.
#include "toolkit/engine_driver.hpp"

#include <algorithm>
#include <utility>

#include "engine/plugin_library.hpp"
#include "graft/toolkit/error.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

/// Returns whether a command loads no plugin library except Graft's own, whose creators have defaults for missing
/// attributes.
bool loads_own_plugins_alone(const std::vector<std::string>& arguments) {
  const std::string own = engine::own_plugin_library().path.string();
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == "--plugin-library" && arguments[i + 1] != own) return false;
  }
  return true;
}

}  // namespace

engine::EngineAnswer ask_engine_driver(const std::vector<std::string>& arguments, const engine::Renamings& renamings,
                                       const LogCallback& on_log, const Watch& watch) {
  Work work(watch);
  try {
    return work.run([&] {
      const engine::EngineDriver driver = engine::find_engine_driver();
      if (on_log) on_log("command", driver.command_text());
      engine::EngineAnswer answer = graft::engine::ask_engine_driver(
          driver, arguments,
          {.on_progress = [&](std::string_view phase, double fraction) { work.report(fraction, phase); },
           .on_log = on_log,
           .should_stop = [&] { return work.is_cancelled(); }},
          renamings);
      if (loads_own_plugins_alone(arguments)) {
        std::erase_if(answer.warnings, [](const std::string& warning) {
          return warning.find("not found in plugin node!") != std::string::npos;
        });
      }
      return answer;
    });
  } catch (const engine::Interrupted&) {
    throw Cancelled();
  }
}

}  // namespace graft::toolkit
