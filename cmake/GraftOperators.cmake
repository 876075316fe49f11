# From an operator list (a file like src/ops/ops.inc) to the sources and the registry of a program or plugin library.

# graft_operator_sources(<result> <list>): sources of every operator on the list. A folder beside the list holds
# <op>.hpp, <op>_cpu.cpp, with CUDA <op>_cuda.cu, and <op>.cpp where a definition needs one. The registry that defines
# graft::operators() is generated into the current build folder.
function(graft_operator_sources result list)
  get_filename_component(list "${list}" ABSOLUTE)
  get_filename_component(root "${list}" DIRECTORY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(STRINGS "${list}" lines REGEX "^GRAFT_OPERATOR\\(")
  set(sources "")
  set(includes "")
  set(entries "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^GRAFT_OPERATOR\\(([a-z0-9_]+), *([A-Za-z0-9_:]+)\\)$")
      message(FATAL_ERROR "${list}: expected GRAFT_OPERATOR(folder, namespace::Definition), found: ${line}")
    endif()
    set(op "${CMAKE_MATCH_1}")
    set(definition "${CMAKE_MATCH_2}")
    list(APPEND sources "${root}/${op}/${op}_cpu.cpp")
    if(EXISTS "${root}/${op}/${op}.cpp")
      list(APPEND sources "${root}/${op}/${op}.cpp")
    endif()
    if(GRAFT_WITH_CUDA)
      list(APPEND sources "${root}/${op}/${op}_cuda.cu")
    endif()
    string(APPEND includes "#include \"${root}/${op}/${op}.hpp\"\n")
    string(APPEND entries "      &graft::operator_type<${definition}>(),\n")
  endforeach()
  get_filename_component(stem "${list}" NAME_WE)
  set(registry "${CMAKE_CURRENT_BINARY_DIR}/${stem}_registry.cpp")
  file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [=[
// Generated from the operator list by cmake/GraftOperators.cmake.
#include <array>

#include "graft/registry.hpp"
@includes@
std::span<const graft::OperatorType* const> graft::operators() {
  static const std::array list{
@entries@  };
  return list;
}
]=])
  list(APPEND sources "${registry}")
  set(${result} "${sources}" PARENT_SCOPE)
endfunction()
