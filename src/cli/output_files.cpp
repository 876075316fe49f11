// Compares paths after following links, whether the files exist or not.
#include "cli/output_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "graft/error.hpp"

namespace graft::cli {
namespace {

bool is_one_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code ignored;
  if (std::filesystem::equivalent(a, b, ignored)) return true;
  const std::filesystem::path first = std::filesystem::weakly_canonical(std::filesystem::absolute(a, ignored), ignored);
  const std::filesystem::path second =
      std::filesystem::weakly_canonical(std::filesystem::absolute(b, ignored), ignored);
  return !first.empty() && first == second;
}

}  // namespace

void check_files_apart(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const NamedFile& file = written[i];
    // Writing to a device such as /dev/null overwrites no file.
    std::error_code ignored;
    if (std::filesystem::exists(file.path, ignored) && !std::filesystem::is_regular_file(file.path, ignored)) continue;
    for (const NamedFile& other : read) {
      if (!is_one_file(file.path, other.path)) continue;
      throw Error(fmt::format("{} {}: this file is {}, which is never overwritten\nChoose another name for the result",
                              file.what, file.path, other.what));
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (!is_one_file(file.path, written[k].path)) continue;
      throw Error(fmt::format("{} {}: {} writes the same file\nChoose different names for them", file.what, file.path,
                              written[k].what));
    }
  }
}

}  // namespace graft::cli
