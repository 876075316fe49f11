# Sets the language standard, the build type and the output folders, and uses ccache and mold if they are installed.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Code that must be fast runs in OpenVINO or on the GPU, so -O2 is enough, which compiles faster than -O3.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# These options apply to the host code of kernel files, which starts kernels; nvcc optimizes the kernels at any level. With
# -Os the code is a fifth smaller than with -O1 (53 KB against 66 KB for instance_norm_cuda.cu) and compiles as fast.
set(CMAKE_CUDA_FLAGS_RELEASE "-DNDEBUG -Xcompiler=-Os")

# The tests run on x86-64, where `char` is signed and a product is rounded before it is added. With these options the code for
# 64-bit ARM computes the same.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsigned-char> $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endif()

set(GRAFT_LIBRARY_DIR "${GRAFT_OUTPUT_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${GRAFT_OUTPUT_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${GRAFT_LIBRARY_DIR}")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/archive")

find_program(GRAFT_CCACHE ccache)
mark_as_advanced(GRAFT_CCACHE)
if(GRAFT_CCACHE)
  foreach(language CXX CUDA)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${GRAFT_CCACHE}")
    endif()
  endforeach()
endif()

# The check runs the compiler, because a compiler may not support the mold that is on PATH.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold GRAFT_HAVE_MOLD)
if(GRAFT_HAVE_MOLD)
  add_link_options($<HOST_LINK:-fuse-ld=mold>)
endif()

# Sanitizers apply to every object, including third-party code that is compiled here. Otherwise they report false errors.
set(GRAFT_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=...")
# With sanitizers, code that takes longer to optimize than to run is not optimized, except for fuzzers, which need its speed.
set(graft_unoptimized "")
if(GRAFT_SANITIZE)
  if(NOT GRAFT_FUZZ)
    set(graft_unoptimized -O0)
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GRAFT_SANITIZE}> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      # These checks take a fifth of g++'s time, and the address sanitizer reports null pointers too.
                      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-sanitize=null>
                      # The assertions detect reads of an empty std::optional, which the address sanitizer does not.
                      $<$<COMPILE_LANGUAGE:CXX>:-D_GLIBCXX_ASSERTIONS>)
  string(REPLACE "," "$<COMMA>" names "${GRAFT_SANITIZE}")
  add_link_options("$<HOST_LINK:-fsanitize=${names}>")
endif()

option(GRAFT_COVERAGE "Count executed lines (gcov)" OFF)
if(GRAFT_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--coverage>)
  add_link_options($<HOST_LINK:--coverage>)
endif()
