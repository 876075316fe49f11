// CMake's list of architectures is compiled into this file, because the program and the plugin library are built
// together.
#include "toolkit/cuda_architectures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "toolkit/gpu_targets.hpp"

namespace graft::toolkit {
namespace {

struct Architecture {
  int number = 0;
  bool is_code = true;
  bool is_ptx = true;
};

Architecture architecture_of(std::string_view text) {
  Architecture found;
  std::from_chars(text.data(), text.data() + text.size(), found.number);
  found.is_code = !text.ends_with("-virtual");
  found.is_ptx = !text.ends_with("-real");
  return found;
}

// Returns whether the number is the architecture of a Jetson module: Xavier, Orin or Thor.
bool is_tegra(int number) {
  constexpr std::array tegra = {72, 87, 110};
  return std::find(tegra.begin(), tegra.end(), number) != tegra.end();
}

}  // namespace

std::vector<std::string> cuda_architectures() {
  std::vector<std::string> architectures;
#if GRAFT_WITH_CUDA
  std::istringstream list(GRAFT_CUDA_ARCHITECTURES);
  for (std::string each; list >> each;) architectures.push_back(each);
#endif
  return architectures;
}

std::string architectures_text(const std::vector<std::string>& architectures) {
  std::vector<std::string> parts;
  for (const std::string& each : architectures) {
    const Architecture found = architecture_of(each);
    if (found.is_code) parts.push_back(fmt::format("sm{}", found.number));
    if (found.is_ptx) parts.push_back(fmt::format("PTX for sm{} and later", found.number));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool runs_on(const std::vector<std::string>& architectures, std::string_view target) {
  constexpr std::string_view prefix = "sm";
  if (!target.starts_with(prefix)) return true;
  const int gpu = architecture_of(target.substr(prefix.size())).number;
  constexpr int generation = 10;
  return std::any_of(architectures.begin(), architectures.end(), [&](const std::string& each) {
    const Architecture found = architecture_of(each);
    if (found.number > gpu) return false;
    // The GPUs of Jetson modules do not run the code of other GPUs, nor the reverse.
    if (!found.is_ptx && found.number != gpu && (is_tegra(found.number) || is_tegra(gpu))) return false;
    return found.is_ptx || found.number / generation == gpu / generation;
  });
}

TargetsByCode split_by_code(const std::vector<std::string>& targets) {
  const std::vector<std::string> architectures = cuda_architectures();
  TargetsByCode split;
  for (const std::string& target : targets) {
    (runs_on(architectures, target) ? split.with_code : split.without_code).push_back(target);
  }
  return split;
}

TargetsByCode default_targets() { return split_by_code({"sm80", "sm86", "sm89", "sm120"}); }

std::vector<std::string> targets_without_code() {
  std::vector<std::string> targets;
  for (const GpuArchitecture& each : gpu_architectures()) targets.emplace_back(each.target);
  return split_by_code(targets).without_code;
}

}  // namespace graft::toolkit
