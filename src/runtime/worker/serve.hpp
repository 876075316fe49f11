// The worker's side.
#pragma once

#include "core/descriptor.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// Greets on the socket, then serves the engine on it and on every socket that is sent over it, each in a thread of its
/// own, until the first one's peer is gone. The process has to end then, whatever the other threads do. Bytes that are
/// no message end it at once, with std::terminate.
void serve(const Engine& engine, Descriptor socket);

}  // namespace graft::runtime
