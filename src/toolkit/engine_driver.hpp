// Runs commands of the engine driver, with progress and cancellation.
#pragma once

#include <string>
#include <vector>

#include "engine/engine_session.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// Runs a command of the engine driver. Where only Graft's own plugin library is loaded, warnings about missing
/// attributes are left out, because Graft's creators have defaults for them. `on_log` may be empty. Throws the errors
/// of graft::engine::ask_engine_driver; Cancelled.
[[nodiscard]] engine::EngineAnswer ask_engine_driver(const std::vector<std::string>& arguments,
                                                     const engine::Renamings& renamings, const LogCallback& on_log,
                                                     const Watch& watch);

}  // namespace graft::toolkit
