// The worker's side of the protocol.
#pragma once

#include <functional>

#include "core/descriptor.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// Serves an engine on the socket. First creates the engine and sends a greeting. If `make_engine` throws an Error,
/// sends the Error instead and returns. Then serves the socket and every socket that is sent over it, each in its own
/// thread, until the peer of the first socket is gone. The process must end then, whatever the other threads do. Bytes
/// that are not a message end the process at once with std::terminate.
void serve(const std::function<const Engine&()>& make_engine, Descriptor socket);

}  // namespace graft::runtime
