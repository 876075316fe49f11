// The memory that a process may use: the memory of the machine, or the limit of the container in which the process
// runs.
#pragma once

#include <filesystem>

namespace graft::runtime {

/// Returns the memory of the machine in bytes or, if it is lower, the limit of the process's control group or of a
/// group that contains it: memory.max of version 2, memory.limit_in_bytes of version 1. `root` is the folder in which
/// `proc` and `sys` are read, for tests.
[[nodiscard]] double usable_memory(const std::filesystem::path& root = "/");

}  // namespace graft::runtime
