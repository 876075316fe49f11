// Loads operators from shared libraries with dlopen, and checks a library before its operators are used.
#include "operator_library/load.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/guide_pages.hpp"
#include "core/shell_quoted.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "operator_library/exported.hpp"

namespace graft {
namespace {

namespace fs = std::filesystem;

/// Returns the next step for a file that is not a library of operators.
std::string make_one() {
  return "Build a library of operators with graft_add_plugin_library: " + guide_page("add_an_operator");
}

[[noreturn]] void refuse(const std::string& file, const std::string& why, const std::string& next) {
  throw Error("library of operators " + file + ": " + why + "\n" + next);
}

/// Throws Error if the file is not a shared library or is truncated. The dynamic loader would map a truncated file
/// without checking its size, and the process would end with SIGBUS.
void check_is_whole(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(file, "it cannot be read", "Check the permissions of the file");
  Elf64_Ehdr header{};
  const bool has_header = static_cast<bool>(stream.read(reinterpret_cast<char*>(&header), sizeof header));
  if (!has_header || std::memcmp(&header.e_ident[0], ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN) {
    refuse(file, "it is not a shared library", make_one());
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return;  // The dynamic loader reports this error.
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(file, ignored);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    stream.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    const bool is_read = static_cast<bool>(stream.read(reinterpret_cast<char*>(&segment), sizeof segment));
    const bool is_inside =
        segment.p_type != PT_LOAD || (segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset);
    if (!is_read || !is_inside) refuse(file, "the file is truncated", "Copy the library again, or build it again");
  }
}

bool is_text(const char* found, std::string_view expected) { return found != nullptr && found == expected; }

std::string text_of(const char* text) { return text == nullptr ? "unknown" : text; }

/// Returns whether a library exports a function by which TensorRT finds plugins.
bool exports_plugins(void* library) {
  return ::dlsym(library, "getCreators") != nullptr || ::dlsym(library, "getPluginCreators") != nullptr;
}

/// Opens a loaded library again by its file. Returns null if the library is not loaded.
std::shared_ptr<void> open_again(const OperatorLibrary& library) {
  void* open = ::dlopen(library.file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (open == nullptr) return nullptr;
  return {open, [](void* each) { ::dlclose(each); }};
}

/// Returns the library's operators. Throws Error if this program cannot use them, for example because the library was
/// compiled with other headers.
const ExportedOperators& exported_by(const std::string& file, void* library) {
  void* symbol = ::dlsym(library, "graft_operators");
  if (symbol == nullptr) {
    refuse(file, "it has no function graft_operators",
           exports_plugins(library) ? "It is a TensorRT plugin library: load it with " +
                                          std::string(setting_name(Setting::plugin_libraries)) +
                                          ". A library of operators for the CPU is built with graft_add_plugin_library "
                                          "of this Graft: " +
                                          guide_page("add_an_operator")
                                    : make_one());
  }
  const ExportedOperators* exported = reinterpret_cast<decltype(&graft_operators)>(symbol)();
  if (exported == nullptr)
    refuse(
        file, "its function graft_operators returned a null pointer instead of a list of operators",
        "Correct the operator whose definition throws an exception, for example in `drop_ins`, and build the library "
        "again; free memory if none is left");
  if (exported->version != operator_library_version) {
    refuse(file,
           "it was built for version " + std::to_string(exported->version) +
               " of the library interface; this Graft needs version " + std::to_string(operator_library_version),
           "Build the library again with the package of this Graft, " GRAFT_VERSION);
  }
  if (!is_text(exported->headers, GRAFT_HEADERS_DIGEST)) {
    refuse(
        file,
        "it was built with different headers: those of Graft " + text_of(exported->graft_version) + ", digest " +
            text_of(exported->headers) + "; this is Graft " GRAFT_VERSION ", digest " GRAFT_HEADERS_DIGEST,
        "Build the library again with the package of this Graft: run its `make install`, then use find_package(graft)");
  }
  if (!is_text(exported->standard_library, standard_library)) {
    refuse(file,
           "it was compiled with " + text_of(exported->standard_library) + ", and this Graft with " + standard_library,
           "Compile the library with the standard library of this Graft");
  }
  return *exported;
}

}  // namespace

const OperatorLibrary& load_operator_library(const std::string& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status)) refuse(file, "it is a folder", "Pass the .so files in it, each library by itself");
  if (!fs::exists(status)) refuse(file, "there is no such file", make_one());
  if (!fs::is_regular_file(status)) refuse(file, "it is not a regular file", make_one());
  // The loader would search the system's folders for a name without a slash.
  const fs::path path = fs::canonical(file);
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  for (const OperatorLibrary& known : operator_libraries()) {
    if (known.file == path) return known;
  }
  check_is_whole(file);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc's is each thread's own
    refuse(file, std::string("it cannot be loaded: ") + text_of(reason),
           "`ldd " + shell_path(path) +
               "` lists the libraries that it needs; install the missing ones, add their folders to LD_LIBRARY_PATH, "
               "or build the library on this machine with the package of this Graft");
  }
  const ExportedOperators& exported = exported_by(file, library);
  if (exported.operators == nullptr || exported.count == 0) refuse(file, "it has no operators", make_one());
  const Status added = add_operator_library({.file = path.string(),
                                             .plugin_namespace = text_of(exported.plugin_namespace),
                                             .operators = {exported.operators, exported.operators + exported.count},
                                             .fusions = {exported.fusions, exported.fusions + exported.fusion_count}});
  if (!added.ok())
    refuse(file, added.message(), "Choose a different name for the operator, and build the library again");
  return operator_libraries().back();
}

std::vector<std::string> operator_folders(const OperatorLibrary& library) {
  const std::shared_ptr<void> open = open_again(library);
  void* symbol = open == nullptr ? nullptr : ::dlsym(open.get(), "graft_operators");
  const ExportedOperators* exported =
      symbol == nullptr ? nullptr : reinterpret_cast<decltype(&graft_operators)>(symbol)();
  std::vector<std::string> folders;
  std::istringstream list(exported == nullptr || exported->folders == nullptr ? "" : exported->folders);
  for (std::string folder; std::getline(list, folder, ',');) folders.push_back(folder);
  if (folders.size() != library.operators.size()) {
    refuse(library.file, "it does not list the folders of its operators",
           "Build the library from a list of operators (a file *.inc) with graft_add_plugin_library");
  }
  return folders;
}

bool has_plugins(const OperatorLibrary& library) {
  const std::shared_ptr<void> open = open_again(library);
  return open != nullptr && exports_plugins(open.get());
}

}  // namespace graft
