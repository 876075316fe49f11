// Changes fields of a protobuf message of any type. Changes of bytes rarely produce a valid message, since lengths no
// longer fit.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>

namespace graft::fuzz {

/// Applies one to four changes: sets unusual numbers and strings, clears fields, duplicates, removes and swaps
/// elements, and replaces messages by others of their type. The same seed applies the same changes.
void mutate(google::protobuf::Message& message, std::uint64_t seed);

}  // namespace graft::fuzz
