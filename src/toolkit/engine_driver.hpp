// Commands of the engine driver, with progress and cancellation.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_session.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// Who is told what the driver does; each may be empty.
struct DriverListener {
  std::function<void(const engine::EngineDriver&)> on_start;
  std::function<void(std::string_view severity, std::string_view message)> on_log;
};

/// Runs one command of the engine driver. Warnings of attributes that Graft's own creators have defaults for are left
/// out. Throws as graft::ask_engine_driver does; Cancelled.
[[nodiscard]] engine::EngineAnswer ask_engine_driver(const std::vector<std::string>& arguments,
                                                     const engine::Renamings& renamings, const DriverListener& listener,
                                                     const Watch& watch);

/// Throws EngineError for a plugin library that is not there.
void check_plugin_libraries(const std::vector<std::string>& libraries);

}  // namespace graft::toolkit
