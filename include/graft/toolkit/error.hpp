// The exceptions of the toolkit.
#pragma once

#include "graft/engine_error.hpp"
#include "graft/error.hpp"

namespace graft::toolkit {

/// The exception that every function of the toolkit throws. what() says what happened, where (file, node, attribute),
/// what was found, what is allowed and how to continue; `kind()` separates wrong input, a missing tool and a defect of
/// Graft.
using graft::Error;

/// The exception that `build`, and other functions that run TensorRT, throw for a failure that TensorRT's process
/// reports. EngineFailure has each part of the report as a field.
using graft::EngineError;
using graft::EngineFailure;

/// Thrown where the caller cancelled a CancelToken before the work was done. No argument has changed, and no file was
/// written except those from which a later call continues: Int8Options::state and BuildOptions::timing_cache.
class Cancelled : public Error {
 public:
  Cancelled() : Error(Kind::answer_is_no, "cancelled by the caller") {}
};

}  // namespace graft::toolkit
