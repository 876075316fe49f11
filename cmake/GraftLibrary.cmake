# graft_add_library and graft_add_executable: the settings that all targets of Graft share.

# g++ 12 wrongly warns of overlapping memory in `"literal" + std::string` (GCC bug 105651) and, with sanitizers, of uninitialized
# members within std::regex (GCC bug 105562).
set(graft_without "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(graft_without -Wno-restrict)
  if(GRAFT_SANITIZE)
    list(APPEND graft_without -Wno-maybe-uninitialized)
  endif()
endif()

# If sources are compiled together (CMAKE_UNITY_BUILD), g++ treats all but the last as headers and warns of their unnamed
# namespaces.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND graft_without -Wno-subobject-linkage)
endif()

# Compressed kernels are many times smaller: the kernels for all architectures took 15.6 MB, but the objects took 119 MB with
# CUDA 12's default, which compresses PTX only. Drivers support this
# compression from 550.54.14 on (CUDA 12.4, according to RAPIDS' build documentation); code that CUDA 13 compiles needs driver
# 580 anyway. With CUDA 12, a build for chosen GPUs keeps the compression that older drivers support. A build of PTX only is
# for a machine without a GPU and is not distributed, so it keeps nvcc's default, which took 0.2 s for 12.5 MB; the smallest
# size took 8.7 s.
set(graft_pack "")
if(GRAFT_WITH_CUDA AND (CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13 OR GRAFT_CUDA_ARCHITECTURES STREQUAL "all"))
  set(carried ${CMAKE_CUDA_ARCHITECTURES})
  list(FILTER carried EXCLUDE REGEX "-virtual$")
  if(carried)
    set(graft_pack --compress-mode=size)
  endif()
endif()

# Sets the compiler options of a target. Warnings are errors, and private includes are searched for in `src`.
# -Wno-parentheses: nvcc puts pointers to members in parentheses before it calls the host compiler.
# -Wno-maybe-uninitialized: g++ 13 wrongly reports an uninitialized function pointer in CUB's launches for several
# architectures.
function(graft_target_defaults target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra ${graft_without} -Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-parentheses,-Wno-maybe-uninitialized,-Werror$<$<BOOL:${graft_without}>:,$<JOIN:${graft_without},$<COMMA>>> -Werror=all-warnings>)
  # nvcc compiles two architectures at a time. Otherwise the longest kernel file keeps one core busy after all other files
  # are compiled.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--threads=2 ${graft_pack}>)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
endfunction()

# graft_add_library(<name> SOURCES <file>... [LIBRARIES <target>...] [PRIVATE_LIBRARIES <target>...] [INSTALL])
#
# Adds a static library and its alias graft::<name without graft_>. Targets that link the library also link LIBRARIES.
# INSTALL adds the library to the targets of find_package(graft).
function(graft_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "INSTALL" "" "SOURCES;LIBRARIES;PRIVATE_LIBRARIES")
  string(REGEX REPLACE "^graft_" "" short "${name}")
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    graft_target_defaults(${name})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(graft::${short} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  target_compile_features(${name} ${scope} cxx_std_20)
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                              $<INSTALL_INTERFACE:include>)
  target_link_libraries(${name} ${scope} ${ARG_LIBRARIES})
  if(ARG_PRIVATE_LIBRARIES)
    target_link_libraries(${name} PRIVATE ${ARG_PRIVATE_LIBRARIES})
  endif()
  if(ARG_INSTALL)
    set_property(GLOBAL APPEND PROPERTY GRAFT_INSTALLED_LIBRARIES ${name})
    # Plugin libraries link these libraries and need only some of their objects, so the sources are not joined.
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()

# graft_compile_quickly(<target>...): reduces the optimization of code that takes longer to optimize than to run because it
# has no loops over data. Builds with sanitizers do not optimize it at all.
function(graft_compile_quickly)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1> ${graft_unoptimized})
  endforeach()
endfunction()

# graft_link_for_older_glibc(<target>...): for libraries that contain the C++ runtime and link with --gc-sections. mold 1.10
# removes the unused std::random_device of that runtime and keeps its import of arc4random, which glibc has from 2.36 on; GNU's
# linker removes both. It needed 0.6 s for the plugin library, mold 0.2 s.
function(graft_link_for_older_glibc)
  if(GRAFT_HAVE_MOLD)
    foreach(target IN LISTS ARGN)
      target_link_options(${target} PRIVATE $<HOST_LINK:-fuse-ld=bfd>)
    endforeach()
  endif()
endfunction()

# graft_add_executable(<name> SOURCES <file>... [LIBRARIES <target>...])
function(graft_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${ARG_SOURCES})
  graft_target_defaults(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
endfunction()
