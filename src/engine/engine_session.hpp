// Runs one command of the engine driver and collects TensorRT's messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/driver.hpp"
#include "graft/report/tensorrt.hpp"

namespace graft::engine {

/// Pairs {old, new} of strings that are replaced in messages; for example the name of a temporary file by the name of
/// the user's file.
using Renamings = std::vector<std::pair<std::string, std::string>>;

struct EngineAnswer {
  nlohmann::json result;              ///< The result event of the driver.
  std::vector<std::string> warnings;  ///< The warnings that TensorRT logged.
};

/// Runs one command of the engine driver, applies `renamings` to its messages, and returns its result and TensorRT's
/// warnings. Throws as run_driver does. The EngineError of a failed build includes TensorRT's last error messages,
/// because the builder reports its reason only there.
[[nodiscard]] EngineAnswer ask_engine_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                                             const DriverCallbacks& callbacks, const Renamings& renamings = {});

/// Returns the flavor, Python module and version of TensorRT from the member "tensorrt" of a driver event.
template <class Json>
[[nodiscard]] report::TensorRTIdentity tensorrt_in(const Json& event) {
  const auto& identity = event.at("tensorrt");
  return {.flavor = identity.value("flavor", ""),
          .module = identity.value("module", ""),
          .version = identity.value("version", "")};
}

}  // namespace graft::engine
