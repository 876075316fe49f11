// The option --engine of the commands that run models on the CPU.
#pragma once

#include <string>

#include "cli/program.hpp"
#include "graft/toolkit/cpu_engine.hpp"

namespace graft::cli {

inline constexpr auto default_engine_name = "auto";

void add_engine_option(Command& command, std::string& engine);

/// Returns the CPU engine that a value of --engine names.
[[nodiscard]] toolkit::CpuEngine engine_of(const std::string& name);

}  // namespace graft::cli
