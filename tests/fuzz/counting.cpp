// Counts memory by hooks of the address sanitizer's allocator.
#include "tests/fuzz/counting.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

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
// These are declared in sanitizer/allocator_interface.h, which GCC 12 does not ship with its library.
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

}  // namespace

Counting::Counting(std::size_t most, std::size_t most_at_once) {
#if GRAFT_COUNTS_MEMORY
  static const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  if (installed == 0) std::abort();
#endif
  held = 0;
  limit = static_cast<std::int64_t>(most);
  limit_at_once = static_cast<std::int64_t>(most_at_once);
  counting = true;
}

Counting::~Counting() { counting = false; }

std::size_t memory_limit(std::size_t file_size) {
  constexpr std::size_t floor = std::size_t{128} << 20U;
  return std::max(4 * file_size, floor);
}

std::size_t single_limit(std::size_t file_size) {
  constexpr std::size_t floor = std::size_t{16} << 20U;
  return std::max(4 * file_size, floor);
}

}  // namespace graft::fuzz
