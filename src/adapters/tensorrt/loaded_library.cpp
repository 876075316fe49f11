// Which shared libraries this process has loaded.
#include "adapters/tensorrt/loaded_library.hpp"

#include <link.h>

bool graft::tensorrt::is_loaded(std::string_view file_name) {
  const auto has_name = [](dl_phdr_info* info, std::size_t /*size*/, void* wanted) -> int {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    const std::string_view file = path.substr(path.rfind('/') + 1);
    return file.starts_with(*static_cast<const std::string_view*>(wanted)) ? 1 : 0;
  };
  return dl_iterate_phdr(has_name, &file_name) != 0;
}
