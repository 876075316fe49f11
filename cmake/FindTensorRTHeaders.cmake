# Finds TensorRT's headers and defines the target graft::tensorrt_headers. No TensorRT library is linked.
#
# The headers are searched for in TENSORRT_ROOT (variable or environment), in the system's include folders, and then in the
# wheel that tools/setup installed. An installed Graft instead searches its copy of these headers and the folder that Graft
# was built against.
if(NOT GRAFT_TENSORRT_WHEEL_DIR)
  set(GRAFT_TENSORRT_WHEEL_DIR "${GRAFT_SITE_PACKAGES}/kernel_lens/include/tensorrt")
endif()
if(NOT TENSORRT_ROOT)
  set(TENSORRT_ROOT "$ENV{TENSORRT_ROOT}")
endif()

if(TENSORRT_ROOT)
  set(places "${TENSORRT_ROOT}/include" "${TENSORRT_ROOT}/include/${CMAKE_LIBRARY_ARCHITECTURE}" "${TENSORRT_ROOT}")
else()
  set(places "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}" /usr/include "${GRAFT_TENSORRT_WHEEL_DIR}" ${GRAFT_BUILT_AGAINST_TENSORRT})
endif()

# TensorRT 8 has no IPluginV3, the interface that every TensorRT since 10.0 shares; its headers are skipped.
set(GRAFT_TENSORRT_INCLUDE_DIR "")
set(too_old "")
foreach(place IN LISTS places)
  if(NOT GRAFT_TENSORRT_INCLUDE_DIR AND EXISTS "${place}/NvInferRuntime.h")
    file(STRINGS "${place}/NvInferRuntime.h" has_v3 REGEX "IPluginV3" LIMIT_COUNT 1)
    if(has_v3)
      set(GRAFT_TENSORRT_INCLUDE_DIR "${place}")
    else()
      string(APPEND too_old " The headers in ${place} are older.")
    endif()
  endif()
endforeach()
if(NOT GRAFT_TENSORRT_INCLUDE_DIR)
  message(FATAL_ERROR "No TensorRT headers of version 10 or later in: ${places}.${too_old} "
                      "Set TENSORRT_ROOT to an SDK, or unset it and run `make deps` in Graft's checkout.")
endif()

set(GRAFT_TENSORRT_VERSION "")
foreach(part MAJOR MINOR PATCH)
  file(STRINGS "${GRAFT_TENSORRT_INCLUDE_DIR}/NvInferVersion.h" line REGEX "^#define (NV_TENSORRT|TRT)_${part}(_ENTERPRISE|_RTX)? +[0-9]+")
  if(line MATCHES " ([0-9]+)")
    list(APPEND GRAFT_TENSORRT_VERSION "${CMAKE_MATCH_1}")
  endif()
endforeach()
list(JOIN GRAFT_TENSORRT_VERSION "." GRAFT_TENSORRT_VERSION)

# The target is imported, so that an exported library may refer to it: a project that finds the package finds its own
# headers.
add_library(graft_tensorrt_headers INTERFACE IMPORTED GLOBAL)
add_library(graft::tensorrt_headers ALIAS graft_tensorrt_headers)
target_include_directories(graft_tensorrt_headers SYSTEM INTERFACE "${GRAFT_TENSORRT_INCLUDE_DIR}")
target_compile_definitions(graft_tensorrt_headers INTERFACE GRAFT_TENSORRT_HEADERS_VERSION="${GRAFT_TENSORRT_VERSION}")
target_link_libraries(graft_tensorrt_headers INTERFACE CUDA::toolkit)
