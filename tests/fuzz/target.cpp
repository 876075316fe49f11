// The way of a file through Graft, with its memory counted.
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "graft/error.hpp"
#include "graph/onnx_io.hpp"
#include "graph/text.hpp"
#include "passes/pipeline.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRAFT_COUNTS_MEMORY 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GRAFT_COUNTS_MEMORY 1
#endif
#ifndef GRAFT_COUNTS_MEMORY
#define GRAFT_COUNTS_MEMORY 0
#endif
#if GRAFT_COUNTS_MEMORY
// Of sanitizer/allocator_interface.h, which GCC 12 does not ship with its library.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                              void (*free_hook)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* pointer);
}
#endif

namespace graft::fuzz {
namespace {

bool counting = false;
std::int64_t held = 0;
std::int64_t limit = 0;
std::int64_t limit_at_once = 0;

#if GRAFT_COUNTS_MEMORY
// Hooks must not allocate; the targets run in one thread.
void on_malloc(const volatile void* /*pointer*/, std::size_t size) {
  if (!counting) return;
  held += static_cast<std::int64_t>(size);
  if (held <= limit && static_cast<std::int64_t>(size) <= limit_at_once) return;
  counting = false;
  std::fprintf(stderr, "graft: %lld bytes held, the last %zu of them at once; allowed are %lld, %lld at once\n",
               static_cast<long long>(held), size, static_cast<long long>(limit),
               static_cast<long long>(limit_at_once));
  std::abort();
}

void on_free(const volatile void* pointer) {
  if (counting) held -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(pointer));
}
#endif

/// While one lives, memory is counted.
class Counting {
 public:
  explicit Counting(std::size_t file_size) {
#if GRAFT_COUNTS_MEMORY
    static const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    if (installed == 0) std::abort();
#endif
    held = 0;
    limit = static_cast<std::int64_t>(memory_limit(file_size));
    limit_at_once = static_cast<std::int64_t>(single_limit(file_size));
    counting = true;
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting() { counting = false; }
};

}  // namespace

std::size_t memory_limit(std::size_t file_size) {
  constexpr std::size_t floor = std::size_t{128} << 20U;
  return std::max(4 * file_size, floor);
}

std::size_t single_limit(std::size_t file_size) {
  constexpr std::size_t floor = std::size_t{16} << 20U;
  return std::max(4 * file_size, floor);
}

void run(std::string_view bytes) {
  try {
    Model model;
    {
      const Counting while_it_runs(bytes.size());
      model = read(bytes);
      model.graph().check();
      (void)convert(model);
      model.graph().check();
      (void)to_text(model);
    }
    // Not counted: `graft convert` writes tensors one after another to a file, and does not read them again.
    const std::string written = serialize_onnx(model);
    model = Model();
    parse_onnx(written, "", "written").graph().check();  // what Graft writes it can read
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;  // a defect of ours, not of the file
  }
}

}  // namespace graft::fuzz
