// Reads the limits of control groups. The folder of a group inside a container may be mounted without the groups around
// it, so every folder up to the mount is read, and those that do not exist are skipped.
#include "runtime/machine_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace graft::runtime {
namespace {

namespace fs = std::filesystem;

/// Returns the number in a file; nothing if there is no such file, or if it contains "max".
std::optional<double> number_in(const fs::path& file) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

/// Returns the lowest limit of a control group and of the groups that contain it, or nothing if there is no limit.
/// `mount` is the folder where control groups are mounted, and `file` is the name of the file with the limit.
std::optional<double> lowest_limit(const fs::path& mount, const fs::path& group, const char* file) {
  std::optional<double> lowest;
  for (fs::path folder = group.relative_path();; folder = folder.parent_path()) {
    if (const auto limit = number_in(mount / folder / file)) lowest = std::min(lowest.value_or(*limit), *limit);
    if (folder.empty()) return lowest;
  }
}

/// Returns whether a comma-separated list of controllers contains this one.
bool has_controller(const std::string& list, const std::string& controller) {
  return ("," + list + ",").find("," + controller + ",") != std::string::npos;
}

}  // namespace

double usable_memory(const fs::path& root) {
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  double memory = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // Each line is "number:controllers:path"; version 2 has the number 0 and no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    std::optional<double> limit;
    if (controllers.empty()) limit = lowest_limit(mount, group, "memory.max");
    if (has_controller(controllers, "memory")) limit = lowest_limit(mount / "memory", group, "memory.limit_in_bytes");
    if (limit) memory = std::min(memory, *limit);
  }
  return memory;
}

}  // namespace graft::runtime
