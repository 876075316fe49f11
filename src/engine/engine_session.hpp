// Runs one command of the engine driver and collects TensorRT's messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/driver.hpp"
#include "graft/report/tensorrt.hpp"

namespace graft::engine {

/// Pairs of strings, of which the second replaces the first in messages; for example the user's file name replaces the
/// name of a temporary file.
using Renamings = std::vector<std::pair<std::string, std::string>>;

struct EngineAnswer {
  nlohmann::json result;              ///< The result event of the driver.
  std::vector<std::string> warnings;  ///< The warnings that TensorRT logged.
};

/// Runs one command of the engine driver. The EngineError of a failed build includes TensorRT's last errors, because
/// the builder states its reason only in messages. Throws as run_driver does.
[[nodiscard]] EngineAnswer ask_engine_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                                             const DriverCallbacks& callbacks, const Renamings& renamings = {});

/// Returns the TensorRT version in the member "tensorrt" of a driver event.
template <class Json>
[[nodiscard]] report::TensorRTIdentity tensorrt_in(const Json& event) {
  const auto& identity = event.at("tensorrt");
  return {.flavor = identity.value("flavor", ""),
          .module = identity.value("module", ""),
          .version = identity.value("version", "")};
}

}  // namespace graft::engine
