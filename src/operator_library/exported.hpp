// The interface between a library of operators and a program that loads it: one C function, `graft_operators`.
//
// The library passes C++ objects to the program, so both must be compiled with the same headers and the same standard
// library. The first three fields are the same in every version. If the version does not match, the program reads no
// other field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace graft {

struct FusionRules;
struct OperatorType;

inline constexpr std::uint32_t operator_library_version = 3;

/// The name of the standard library with which this source is compiled.
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
  std::uint32_t version;  ///< The version of this interface: operator_library_version.
  /// The digest of include/graft/*.hpp; see graft_headers_digest in cmake/GraftOperators.cmake.
  const char* headers;
  const char* standard_library;  ///< The name of the standard library with which the library was compiled; see above.
  const char* graft_version;
  const char* plugin_namespace;  ///< The namespace of the library's TensorRT plugins.
  const OperatorType* const* operators;
  std::size_t count;
  const FusionRules* fusions;
  std::size_t fusion_count;
  const char* folders;  ///< The folders of the operators in the order of the operators, separated by commas.
};

}  // namespace graft

/// Returns the operators of this library, or null if they cannot be listed.
extern "C" __attribute__((visibility("default"))) const graft::ExportedOperators* graft_operators() noexcept;
