// Runs one command of the engine driver and collects TensorRT's messages.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/driver.hpp"

namespace graft::engine {

/// Pairs of strings: the second replaces the first in messages, for example the user's file instead of a temporary one.
using Renamings = std::vector<std::pair<std::string, std::string>>;

struct EngineAnswer {
  nlohmann::json result;              ///< The driver's result event.
  std::vector<std::string> warnings;  ///< TensorRT's warnings.
};

/// Runs one command of the engine driver. The EngineError of a failed build includes TensorRT's last errors, because
/// the builder states its reason only in messages. Throws as run_driver does.
[[nodiscard]] EngineAnswer ask_engine_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                                             const DriverCallbacks& callbacks, const Renamings& renamings = {});

/// Returns "TensorRT-RTX 1.7.1.116" for the flavor and version that the driver reports.
[[nodiscard]] std::string tensorrt_text(std::string_view flavor, std::string_view version);

}  // namespace graft::engine
