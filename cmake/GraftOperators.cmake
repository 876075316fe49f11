# From an operator list (a file like src/ops/ops.inc) to the sources and the registry of a program or plugin library.

# graft_read_operators(<list>): sets operator_root, the folder of the list; operator_stem, its name; and, line by line,
# operator_folders and operator_definitions.
function(graft_read_operators list)
  get_filename_component(list "${list}" ABSOLUTE)
  get_filename_component(root "${list}" DIRECTORY)
  get_filename_component(stem "${list}" NAME_WE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(STRINGS "${list}" lines REGEX "^GRAFT_OPERATOR\\(")
  set(folders "")
  set(definitions "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^GRAFT_OPERATOR\\(([a-z0-9_]+), *([A-Za-z0-9_:]+)\\)$")
      message(FATAL_ERROR "${list}: expected GRAFT_OPERATOR(folder, namespace::Definition), found: ${line}")
    endif()
    list(APPEND folders "${CMAKE_MATCH_1}")
    list(APPEND definitions "${CMAKE_MATCH_2}")
  endforeach()
  set(operator_root "${root}" PARENT_SCOPE)
  set(operator_stem "${stem}" PARENT_SCOPE)
  set(operator_folders "${folders}" PARENT_SCOPE)
  set(operator_definitions "${definitions}" PARENT_SCOPE)
endfunction()

# graft_operator_sources(<list> DEFINITIONS <result> KERNELS <result>): sources of every operator on the list. A folder
# beside the list holds <op>.hpp, <op>_cpu.cpp, <op>.cpp where a definition needs one, and <op>_cuda.cu with any further
# .cu. Definitions, with their reference kernels, need no CUDA; they bring graft::linked_operators() and
# graft::linked_fusions(), which has the rules in <op>_fusion.yaml, generated into the current build folder. Kernels, nothing in a build without CUDA, bring graft::register_cuda_kernels().
#
# Hopper's own instructions exist only in code for sm_90a: files *_sm90a.cu are compiled for it too, with GRAFT_SM90A=1,
# where the build has code for 90.
function(graft_operator_sources list)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "DEFINITIONS;KERNELS" "")
  graft_read_operators("${list}")
  set(sources "")
  set(all_kernels "")
  set(includes "")
  set(entries "")
  set(registrations "")
  set(fusions "")
  set(fusion_count 0)
  foreach(op definition IN ZIP_LISTS operator_folders operator_definitions)
    set(path "${operator_root}/${op}/${op}")
    list(APPEND sources "${path}_cpu.cpp")
    # By a pattern, so that one which is written later is found when the build runs again.
    file(GLOB fusion CONFIGURE_DEPENDS "${path}_fusion.yaml")
    if(fusion)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${fusion}")
      file(READ "${fusion}" rules)
      string(APPEND fusions "      {\"${op}_fusion.yaml\", R\"graft(${rules})graft\"},\n")
      math(EXPR fusion_count "${fusion_count} + 1")
    endif()
    if(EXISTS "${path}.cpp")
      list(APPEND sources "${path}.cpp")
    endif()
    if(GRAFT_WITH_CUDA)
      file(GLOB kernels CONFIGURE_DEPENDS "${operator_root}/${op}/*.cu")
      list(APPEND all_kernels ${kernels})
      list(FILTER kernels INCLUDE REGEX "_sm90a\\.cu$")
      if(kernels AND ";${CMAKE_CUDA_ARCHITECTURES};" MATCHES ";90(-[a-z]+)?;")
        set_source_files_properties(${kernels} PROPERTIES
          COMPILE_OPTIONS "--generate-code=arch=compute_90a,code=[sm_90a]" COMPILE_DEFINITIONS GRAFT_SM90A=1)
      endif()
    endif()
    string(APPEND includes "#include \"${path}.hpp\"\n")
    string(APPEND entries "      &graft::operator_type<${definition}>(),\n")
    string(APPEND registrations "    graft::detail::register_cuda_kernels_of<${definition}>();\n")
  endforeach()
  set(registry "${CMAKE_CURRENT_BINARY_DIR}/${operator_stem}_registry.cpp")
  # Operators are written apart from each other: names that two of them chose alike do not meet. A program with a list of
  # its own, as some tests are, leaves out the registry.
  set_source_files_properties(${sources} ${all_kernels} "${registry}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [=[
// Generated from the operator list by cmake/GraftOperators.cmake.
#include <array>

#include "graft/registry.hpp"
@includes@
std::span<const graft::OperatorType* const> graft::linked_operators() {
  static const std::array list{
@entries@  };
  return list;
}

std::span<const graft::FusionRules> graft::linked_fusions() {
  static constexpr std::array<graft::FusionRules, @fusion_count@> list{{
@fusions@  }};
  return list;
}
]=])
  set(${ARG_DEFINITIONS} "${sources}" "${registry}" PARENT_SCOPE)
  if(NOT GRAFT_WITH_CUDA)
    set(${ARG_KERNELS} "" PARENT_SCOPE)
    return()
  endif()
  set(registry "${CMAKE_CURRENT_BINARY_DIR}/${operator_stem}_cuda_registry.cpp")
  file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [=[
// Generated from the operator list by cmake/GraftOperators.cmake.
#include "graft/registry.hpp"
#include "kernels/register.hpp"
@includes@
void graft::register_cuda_kernels() {
  [[maybe_unused]] static const bool once = [] {
@registrations@    return true;
  }();
}
]=])
  set(${ARG_KERNELS} "${all_kernels}" "${registry}" PARENT_SCOPE)
endfunction()

# graft_operator_fusions(<result> <list>): the sources that define graft::passes::operator_fusions(), the passes that make the
# operators on the list of what networks write. Of an operator that has one, <op>_fusion.cpp defines <op>_fusion, a
# graft::passes::OperatorFusion (src/passes/operator_fusion.hpp); a long one has further files in the folder fusion/.
function(graft_operator_fusions result list)
  graft_read_operators("${list}")
  set(sources "")
  set(declarations "")
  set(entries "")
  set(count 0)
  foreach(op IN LISTS operator_folders)
    # By a pattern, so that a fusion which is written later is found when the build runs again.
    file(GLOB fusion CONFIGURE_DEPENDS "${operator_root}/${op}/${op}_fusion.cpp")
    if(fusion)
      file(GLOB parts CONFIGURE_DEPENDS "${operator_root}/${op}/fusion/*.cpp")
      list(APPEND sources "${fusion}" ${parts})
      string(APPEND declarations "extern const OperatorFusion ${op}_fusion;\n")
      string(APPEND entries "      &graft::passes::${op}_fusion,\n")
      math(EXPR count "${count} + 1")
    endif()
  endforeach()
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(registry "${CMAKE_CURRENT_BINARY_DIR}/${operator_stem}_fusions.cpp")
  file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [=[
// Generated from the operator list by cmake/GraftOperators.cmake.
#include <array>

#include "passes/operator_fusion.hpp"

namespace graft::passes {
@declarations@}  // namespace graft::passes

std::span<const graft::passes::OperatorFusion* const> graft::passes::operator_fusions() {
  static constexpr std::array<const graft::passes::OperatorFusion*, @count@> list{
@entries@  };
  return list;
}
]=])
  set(${result} "${sources}" "${registry}" PARENT_SCOPE)
endfunction()

# Where Graft's own sources are: in its checkout, or where an installation put them.
function(graft_source_root variable)
  if(PROJECT_NAME STREQUAL "graft")
    set(${variable} "${PROJECT_SOURCE_DIR}/src" PARENT_SCOPE)
  else()
    set(${variable} "${GRAFT_SOURCE_DIR}" PARENT_SCOPE)
  endif()
endfunction()

# graft_headers_digest(<result>): of the headers that operators are written with. A library of operators and a program that
# loads it exchange C++ objects, so both have to be made with the same.
function(graft_headers_digest result)
  if(PROJECT_NAME STREQUAL "graft")
    set(folder "${PROJECT_SOURCE_DIR}/include/graft")
  else()
    set(folder "${GRAFT_INCLUDE_DIR}/graft")
  endif()
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.hpp")
  graft_source_root(root)
  list(APPEND headers "${root}/ops/operator_case.hpp" "${root}/ops/random_cases.hpp")  # what is timed crosses the border too
  list(SORT headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(digests "")
  foreach(header IN LISTS headers)
    file(SHA256 "${header}" digest)
    get_filename_component(file "${header}" NAME)
    string(APPEND digests "${file} ${digest}\n")
  endforeach()
  string(SHA256 digest "${digests}")
  string(SUBSTRING "${digest}" 0 16 digest)
  set(${result} "${digest}" PARENT_SCOPE)
endfunction()

# graft_add_plugin_library(<name> OPERATORS <list>|<target>... [NAMESPACE <plugin namespace>])
#
# A library of operators, lib<name>.so, of a list, or of library targets that were made from one. Two programs load it:
# TensorRT, as a plugin library with a creator for every operator, and `graft --operators`, which finds reference kernels
# and functions in it (src/operator_library/exported.hpp). It links no TensorRT, and carries its C++ and CUDA runtimes, so
# that it can be copied to a machine which has TensorRT alone. Without NAMESPACE its plugins are in the empty one, where
# TensorRT finds them from a node of any domain. Without CUDA's compiler it has no plugins, and is for `graft` alone.
function(graft_add_plugin_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "NAMESPACE" "OPERATORS")
  graft_source_root(root)
  graft_headers_digest(digest)
  add_library(${name} SHARED "${root}/operator_library/exports.cpp")
  if(GRAFT_WITH_CUDA)
    target_sources(${name} PRIVATE "${root}/adapters/tensorrt/exports.cpp")
    target_link_libraries(${name} PRIVATE graft::tensorrt graft::kernels CUDA::cudart_static)
    set(export_list "${root}/adapters/tensorrt/exports.map")
  else()
    message(STATUS "${name}: without CUDA (${GRAFT_WITHOUT_CUDA_REASON}) it has reference kernels for graft's commands, and no TensorRT plugins")
    set(export_list "${root}/operator_library/exports.map")
  endif()
  target_compile_definitions(${name} PRIVATE
    GRAFT_PLUGIN_NAMESPACE="${ARG_NAMESPACE}" GRAFT_VERSION="${GRAFT_VERSION}" GRAFT_HEADERS_DIGEST="${digest}")
  list(GET ARG_OPERATORS 0 first)
  set(operator_folders "")
  if(TARGET ${first})
    target_link_libraries(${name} PRIVATE ${ARG_OPERATORS})
  else()
    # Objects of their own, so that the tests of the operators need not compile the kernels once more.
    graft_operator_sources("${ARG_OPERATORS}" DEFINITIONS sources KERNELS kernels)
    graft_read_operators("${ARG_OPERATORS}")
    get_filename_component(list "${ARG_OPERATORS}" ABSOLUTE)
    get_filename_component(folder "${list}" DIRECTORY)
    add_library(${name}_operators OBJECT ${sources} ${kernels})
    target_include_directories(${name}_operators PUBLIC "${folder}" "${root}")
    target_link_libraries(${name}_operators PUBLIC graft::core Eigen3::Eigen)
    if(GRAFT_WITH_CUDA)
      target_link_libraries(${name}_operators PUBLIC graft::kernels CUDA::cudart_static)
    endif()
    set_target_properties(${name}_operators PROPERTIES CXX_STANDARD 20 CUDA_STANDARD 20 POSITION_INDEPENDENT_CODE ON
                          CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden GRAFT_OPERATOR_LIST "${list}")
    target_link_libraries(${name} PRIVATE ${name}_operators)
    graft_operator_timings(timings "${list}")
    target_sources(${name} PRIVATE "${timings}" "${root}/ops/operator_case.cpp" "${root}/ops/random_cases.cpp"
                   "${root}/operator_library/timings_exports.cpp")
    target_compile_definitions(${name} PRIVATE GRAFT_HAS_KERNELS=$<BOOL:${GRAFT_WITH_CUDA}>)
  endif()
  list(JOIN operator_folders "," folders)
  target_compile_definitions(${name} PRIVATE GRAFT_OPERATOR_FOLDERS="${folders}")
  target_include_directories(${name} PRIVATE "${root}")
  target_link_libraries(${name} PRIVATE graft::core)
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc "LINKER:--version-script=${export_list}" LINKER:--no-undefined)
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CUDA_STANDARD 20 CXX_VISIBILITY_PRESET hidden
                        CUDA_VISIBILITY_PRESET hidden LINK_DEPENDS "${export_list}" SKIP_BUILD_RPATH ON)
endfunction()

# graft_add_operator_tests(<plugin library> [OPERATORS <list>])
#
# A ctest test <plugin library>_cases of a library that was made from a list: it runs every case in the operators'
# <op>_cases.hpp, see src/operator_library/case_tests.cpp. For operators outside Graft, which has tests of its own. OPERATORS
# are those that have cases, if not all of the library's.
function(graft_add_operator_tests library)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "OPERATORS" "")
  graft_source_root(root)
  get_target_property(list ${library}_operators GRAFT_OPERATOR_LIST)
  if(ARG_OPERATORS)
    set(list "${ARG_OPERATORS}")
  endif()
  graft_operator_cases(cases "${list}")
  if(GRAFT_WITH_CUDA)
    set(gpu case_tests_gpu.cpp)
  else()
    set(gpu case_tests_no_gpu.cpp)
  endif()
  add_executable(${library}_cases "${cases}" "${root}/ops/operator_case.cpp" "${root}/operator_library/case_tests.cpp"
                 "${root}/operator_library/${gpu}")
  target_link_libraries(${library}_cases PRIVATE ${library}_operators graft::registry)
  set_target_properties(${library}_cases PROPERTIES CXX_STANDARD 20)
  add_test(NAME ${library}_cases COMMAND ${library}_cases)
endfunction()

# graft_add_stand_ins(<name> PLUGINS <plugin library>)
#
# lib<name>.so, a small TensorRT plugin library beside a plugin library: with a creator for every name of another
# library's plugin that its operators stand in for, where that name is free. See src/adapters/tensorrt/stand_ins.cpp.
function(graft_add_stand_ins name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PLUGINS" "")
  graft_add_other_names(${name} PLUGINS ${ARG_PLUGINS} CREATORS graft_stand_ins)
endfunction()

# graft_add_onnx_names(<name> PLUGINS <plugin library>): the same with a creator for every standard ONNX operator that the
# library's operators compute, under its ONNX name.
function(graft_add_onnx_names name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PLUGINS" "")
  graft_add_other_names(${name} PLUGINS ${ARG_PLUGINS} CREATORS graft_onnx_names)
endfunction()

# CREATORS: the function of the plugin library that has them, src/adapters/tensorrt/exports.hpp.
function(graft_add_other_names name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PLUGINS;CREATORS" "")
  graft_source_root(root)
  set(export_list "${root}/adapters/tensorrt/stand_ins.map")
  add_library(${name} MODULE "${root}/adapters/tensorrt/stand_ins.cpp")
  target_include_directories(${name} PRIVATE "${root}")
  target_compile_definitions(${name} PRIVATE GRAFT_CREATORS=${ARG_CREATORS})
  target_link_libraries(${name} PRIVATE ${ARG_PLUGINS} graft::tensorrt)
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc "LINKER:--version-script=${export_list}" LINKER:--no-undefined)
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CXX_VISIBILITY_PRESET hidden LINK_DEPENDS "${export_list}"
                        BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# graft_list_operators(<list> KIND <kind> TYPE <type> ENTRY <expression> RESULT <result>): the source that defines
# graft::ops::operator_<kind>(), which returns a <type> for each operator on the list. It includes every operator's
# <op>_cases.hpp, so an operator without cases does not compile, but for OPTIONAL, which leaves it out. In the expression
# DEFINITION stands for the definition.
function(graft_list_operators list)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "OPTIONAL" "KIND;TYPE;ENTRY;RESULT" "")
  graft_read_operators("${list}")
  set(includes "")
  set(entries "")
  foreach(op definition IN ZIP_LISTS operator_folders operator_definitions)
    # By a pattern, so that cases which are written later are found when the build runs again.
    file(GLOB cases CONFIGURE_DEPENDS "${operator_root}/${op}/${op}_cases.hpp")
    if(ARG_OPTIONAL AND NOT cases)
      continue()
    endif()
    string(REPLACE "DEFINITION" "${definition}" entry "${ARG_ENTRY}")
    string(APPEND includes "#include \"${operator_root}/${op}/${op}_cases.hpp\"\n")
    string(APPEND entries "      {&graft::operator_type<${definition}>(), ${entry}},\n")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${operator_stem}_${ARG_KIND}.cpp")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [=[
// Generated from the operator list by cmake/GraftOperators.cmake.
#include "ops/operator_case.hpp"
@includes@
const std::vector<graft::ops::@ARG_TYPE@>& graft::ops::operator_@ARG_KIND@() {
  static const std::vector<graft::ops::@ARG_TYPE@> list{
@entries@  };
  return list;
}
]=])
  set(${ARG_RESULT} "${source}" PARENT_SCOPE)
endfunction()

# graft_operator_cases(<result> <list>): the source that defines graft::ops::operator_cases() for the operators on the list.
function(graft_operator_cases result list)
  graft_list_operators("${list}" KIND cases TYPE OperatorCases ENTRY "cases(DEFINITION{})" RESULT source)
  set(${result} "${source}" PARENT_SCOPE)
endfunction()

# graft_operator_timings(<result> <list>): the source that defines graft::ops::operator_timings(), what is timed of the operators
# on the list that have cases. Apart from their cases, so that a program which times them need not make those.
function(graft_operator_timings result list)
  graft_list_operators("${list}" OPTIONAL KIND timings TYPE OperatorTimings ENTRY "graft::ops::timings_of<DEFINITION>(), graft::ops::draw_of<DEFINITION>()" RESULT source)
  set(${result} "${source}" PARENT_SCOPE)
endfunction()
