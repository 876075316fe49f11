// An engine that checks whether its compiled models compute the same bits twice.
#pragma once

#include <memory>

#include "runtime/engine.hpp"
#include "runtime/engine_limit.hpp"

namespace graft::verify {

/// Thrown if a compiled model returned different bits for the same inputs. The caller must not use the results of this
/// engine for the model.
class Unstable : public runtime::EngineLimit {
 public:
  using EngineLimit::EngineLimit;
};

/// Returns an engine that repeats the first run of each compiled model and throws Unstable if an output has different
/// bits the second time, for example because the engine reads memory that it did not write. Models with random numbers
/// are not repeated. `engine` must outlive the result.
[[nodiscard]] std::unique_ptr<runtime::Engine> make_repeating_engine(const runtime::Engine& engine);

}  // namespace graft::verify
