// Reads the timings of shared libraries that are already loaded.
#include "operator_library/timings.hpp"

#include <dlfcn.h>

#include <memory>

#include "graft/error.hpp"
#include "graft/operator/registry.hpp"

namespace graft {
namespace {

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};

}  // namespace

std::vector<ops::OperatorTimings> library_timings() {
  std::vector<ops::OperatorTimings> all;
  for (const OperatorLibrary& library : operator_libraries()) {
    const std::unique_ptr<void, Close> open(::dlopen(library.file.c_str(), RTLD_NOW | RTLD_NOLOAD));
    void* symbol = open == nullptr ? nullptr : ::dlsym(open.get(), "graft_operator_timings");
    const ExportedTimings* exported =
        symbol == nullptr ? nullptr : reinterpret_cast<decltype(&graft_operator_timings)>(symbol)();
    if (exported == nullptr) {
      throw Error(
          "library of operators " + library.file +
          ": it does not list the timings of its operators\nBuild the library again with the package of this Graft");
    }
    if (exported->register_cuda_kernels != nullptr) exported->register_cuda_kernels();
    all.insert(all.end(), exported->timings, exported->timings + exported->count);
  }
  return all;
}

}  // namespace graft
