// One command of the engine driver, with TensorRT's messages collected.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/driver.hpp"

namespace graft::engine {

/// Strings that replace others in messages: the user's file in the place of a temporary one.
using Renamings = std::vector<std::pair<std::string, std::string>>;

struct EngineAnswer {
  nlohmann::json result;              ///< The driver's result event.
  std::vector<std::string> warnings;  ///< TensorRT's.
};

/// Runs one command of the engine driver. An EngineError about a build that failed carries TensorRT's last errors, as
/// the builder states its reason in messages alone. Throws like run_driver.
[[nodiscard]] EngineAnswer ask_engine_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                                             const DriverCallbacks& callbacks, const Renamings& renamings = {});

/// Returns "TensorRT-RTX 1.7.1.116" for the flavor and version that the driver reports.
[[nodiscard]] std::string tensorrt_text(std::string_view flavor, std::string_view version);

}  // namespace graft::engine
