// Runs one command of the engine driver and collects TensorRT's messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/driver.hpp"
#include "graft/report/tensorrt.hpp"

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

/// Returns the TensorRT that the driver reports in the member "tensorrt" of an event.
template <class Json>
[[nodiscard]] report::TensorRTIdentity tensorrt_in(const Json& event) {
  const auto& identity = event.at("tensorrt");
  return {.flavor = identity.value("flavor", ""),
          .module = identity.value("module", ""),
          .version = identity.value("version", "")};
}

}  // namespace graft::engine
