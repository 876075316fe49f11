// Implements files.hpp. To create an AtomicFile shows whether a file can be written.
#include "graft/toolkit/files.hpp"

#include <fmt/format.h>

#include <system_error>

#include "core/atomic_file.hpp"
#include "core/temporaries.hpp"
#include "engine/plugin_library.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/error.hpp"
#include "onnx/mapped_file.hpp"

namespace graft::toolkit {

void check_writable(const std::filesystem::path& file) { const AtomicFile probe(file); }

void check_plugin_libraries(const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(library, ignored)) continue;
    const bool is_folder = std::filesystem::is_directory(library, ignored);
    const char* why = is_folder                                   ? "it is a folder"
                      : std::filesystem::exists(library, ignored) ? "it is not a regular file"
                                                                  : "no such file";
    throw EngineError(
        Error::Kind::bad_input,
        {.kind = "plugin_library",
         .message = fmt::format("{} {}: {}", setting_name(Setting::plugin_libraries), library, why),
         .next_step = is_folder ? "Pass the .so files in it, each library by itself"
                                : fmt::format("Graft's own library is {}", engine::own_plugin_library().path.string()),
         .library = library,
         .cause = is_folder ? "folder" : "no_file"});
  }
}

bool has_temporary_files() { return CountedTemporary::any(); }

const char* mapped_file_at(const void* address) { return onnx::MappedFile::path_at(address); }

}  // namespace graft::toolkit
