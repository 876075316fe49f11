// The worker's side.
#pragma once

#include <functional>

#include "core/descriptor.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// Makes the engine and greets on the socket, or sends the Error that `make_engine` throws, and returns. Then serves
/// the engine on the socket and on every socket that is sent over it, each in a thread of its own, until the first
/// one's peer is gone. The process has to end then, whatever the other threads do. Bytes that are no message end it at
/// once, with std::terminate.
void serve(const std::function<const Engine&()>& make_engine, Descriptor socket);

}  // namespace graft::runtime
