// Finds the shared libraries that this process has loaded.
#include "adapters/tensorrt/loaded_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <memory>
#include <string>

namespace graft::tensorrt {
namespace {

struct Search {
  std::string_view file_name;
  std::string path;
};

/// Returns the path of a loaded library whose file name begins with `file_name`, or an empty string.
std::string path_of_loaded(std::string_view file_name) {
  Search search{file_name, {}};
  const auto has_name = [](dl_phdr_info* info, std::size_t /*size*/, void* wanted) -> int {
    auto& asked = *static_cast<Search*>(wanted);
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    const std::string_view file = path.substr(path.rfind('/') + 1);
    if (!file.starts_with(asked.file_name)) return 0;
    asked.path = path;
    return 1;
  };
  dl_iterate_phdr(has_name, &search);
  return search.path;
}

}  // namespace

bool is_loaded(std::string_view file_name) { return !path_of_loaded(file_name).empty(); }

int tensorrt_version() {
  const std::string path = path_of_loaded("libnvinfer.so");
  if (path.empty()) return 0;
  const std::unique_ptr<void, int (*)(void*)> library(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD), dlclose);
  if (library == nullptr) return 0;
  const auto version = reinterpret_cast<std::int32_t (*)()>(dlsym(library.get(), "getInferLibVersion"));
  return version == nullptr ? 0 : version();
}

}  // namespace graft::tensorrt
