// The exceptions of the toolkit.
#pragma once

#include "graft/engine_error.hpp"
#include "graft/error.hpp"

namespace graft::toolkit {

/// What every function of the toolkit throws: its text says what happened, where (file, node, attribute), what was
/// found, what is allowed and what to do; `kind()` says whose fault it is.
using graft::Error;

/// What `build`, and `inspect` where TensorRT is asked, throw for what its process says: each part of it is a field.
using graft::EngineError;
using graft::EngineFailure;

/// Thrown where the caller's CancelToken was used before the work was done. No argument has changed, and no file has
/// been written but those that are made to go on from: Int8Options::state and BuildOptions::timing_cache.
class Cancelled : public Error {
 public:
  Cancelled() : Error(Kind::answer_is_no, "cancelled by the caller") {}
};

}  // namespace graft::toolkit
