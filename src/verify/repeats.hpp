// An engine whose compiled models have to compute the same bits twice.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine.hpp"
#include "runtime/engine_limit.hpp"

namespace graft::verify {

/// A compiled model computed other bits from the same inputs. The results of such an engine are not used for that
/// model.
class Unstable : public runtime::EngineLimit {
 public:
  using EngineLimit::EngineLimit;
};

/// Repeats the first run of each compiled model and throws Unstable where an output has other bits the second time: an
/// engine that reads memory which it did not write shows it so. Models that draw random numbers are not
/// repeated. `engine` has to outlive the result.
[[nodiscard]] std::unique_ptr<runtime::Engine> make_repeating_engine(const runtime::Engine& engine);

}  // namespace graft::verify
