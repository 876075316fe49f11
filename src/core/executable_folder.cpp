// Gets the file that contains this code from the dynamic loader.
#include "core/executable_folder.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <system_error>

namespace graft {

namespace fs = std::filesystem;

fs::path executable_folder() {
  Dl_info ignored{};
  link_map* file = nullptr;
  const bool is_known = ::dladdr1(reinterpret_cast<const void*>(&executable_folder), &ignored,
                                  reinterpret_cast<void**>(&file), RTLD_DL_LINKMAP) != 0;
  std::error_code failed;
  // The loader reports an empty name for the program itself.
  if (is_known && file->l_name != nullptr && *file->l_name != '\0') {
    return fs::absolute(file->l_name, failed).lexically_normal().parent_path();
  }
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  return failed ? fs::path() : self.parent_path();
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace graft
