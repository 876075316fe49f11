// Changes fields of a protobuf message of any type: what changes of bytes seldom do, since lengths no longer fit then.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>

namespace graft::fuzz {

/// Makes one to four changes: numbers and texts that readers stumble over, fields cleared, elements doubled, removed
/// and exchanged, messages put in the place of others of their type. The same seed makes the same changes.
void mutate(google::protobuf::Message& message, std::uint64_t seed);

}  // namespace graft::fuzz
