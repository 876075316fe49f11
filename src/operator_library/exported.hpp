// What a library of operators shows to a program that loads it: one C function, `graft_operators`.
//
// Operators are C++ objects that cross the border between the two, so both have to be made from the same headers and
// with the same standard library. The first three fields stay as they are in every version, and are all that is looked
// at where they do not match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace graft {

struct FusionRules;
struct OperatorType;

inline constexpr std::uint32_t operator_library_version = 3;

/// The standard library that this source is compiled with.
#if defined(_LIBCPP_VERSION)
inline constexpr auto standard_library = "libc++";
#elif defined(_GLIBCXX_DEBUG)
inline constexpr auto standard_library = "libstdc++ in its debug mode";
#elif _GLIBCXX_USE_CXX11_ABI
inline constexpr auto standard_library = "libstdc++";
#else
inline constexpr auto standard_library = "libstdc++ with the ABI before C++11";
#endif

struct ExportedOperators {
  std::uint32_t version;         ///< operator_library_version.
  const char* headers;           ///< Digest of include/graft/*.hpp: graft_headers_digest in cmake/GraftOperators.cmake.
  const char* standard_library;  ///< As above.
  const char* graft_version;
  const char* plugin_namespace;  ///< Of the TensorRT plugins in the library.
  const OperatorType* const* operators;
  std::size_t count;
  const FusionRules* fusions;
  std::size_t fusion_count;
  const char* folders;  ///< Of the operators, in their order, joined by commas.
};

}  // namespace graft

/// Null if the operators cannot be listed.
extern "C" __attribute__((visibility("default"))) const graft::ExportedOperators* graft_operators() noexcept;
