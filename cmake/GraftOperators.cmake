# Computes the sources and the registry of a program or plugin library from an operator list (such as src/ops/ops.inc).

# graft_without_comments(<variable>): removes C++ comments from the text, and the byte order mark that Windows editors write
# at its beginning. Line numbers stay the same.
function(graft_without_comments variable)
  set(text "${${variable}}")
  string(ASCII 239 187 191 mark)
  string(FIND "${text}" "${mark}" at)
  if(at EQUAL 0)
    string(SUBSTRING "${text}" 3 -1 text)
  endif()
  set(kept "")
  while(text MATCHES "//[^\n]*|/\\*[^*]*\\*+([^/*][^*]*\\*+)*/")
    set(comment "${CMAKE_MATCH_0}")
    string(FIND "${text}" "${comment}" at)
    string(SUBSTRING "${text}" 0 ${at} before)
    string(LENGTH "${comment}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${text}" ${at} -1 text)
    string(REGEX REPLACE "[^\n]" "" breaks "${comment}")
    string(APPEND kept "${before}${breaks}")
  endwhile()
  set(${variable} "${kept}${text}" PARENT_SCOPE)
endfunction()

# graft_read_operators(<list>): sets operator_root, the folder of the list; operator_stem, its name; and, line by line,
# operator_folders, operator_definitions and operator_lines, the #line directives with which a compiler reports that line of
# the list. A line that is neither an operator nor a comment is an error, because a misspelled line would leave out an
# operator. An operator without its files is an error too.
function(graft_read_operators list)
  get_filename_component(list "${list}" ABSOLUTE)
  get_filename_component(root "${list}" DIRECTORY)
  get_filename_component(stem "${list}" NAME_WE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  if(NOT EXISTS "${list}")
    message(FATAL_ERROR "${list}: there is no such list of operators")
  endif()
  set(form "GRAFT_OPERATOR(folder, namespace::Definition), for example GRAFT_OPERATOR(beta_swish, my_ops::BetaSwish)")
  file(READ "${list}" text)
  graft_without_comments(text)
  string(APPEND text "\n")
  set(number 0)
  set(folders "")
  set(definitions "")
  set(lines "")
  # The text is not split into a CMake list, because `;` and brackets in a line would change the elements.
  while(NOT text STREQUAL "")
    math(EXPR number "${number} + 1")
    set(place "${list}:${number}")
    string(FIND "${text}" "\n" end)
    string(SUBSTRING "${text}" 0 ${end} line)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${text}" ${end} -1 text)
    string(STRIP "${line}" line)
    if(line STREQUAL "")
      continue()
    elseif(NOT line MATCHES "^GRAFT_OPERATOR\\( *([a-z0-9_]+) *, *([A-Za-z0-9_:]+) *\\)$")
      message(FATAL_ERROR "${place}: found: ${line}\nA line for each operator is allowed, and comments as in C++: ${form}")
    endif()
    set(op "${CMAKE_MATCH_1}")
    set(definition "${CMAKE_MATCH_2}")
    if(op IN_LIST folders)
      message(FATAL_ERROR "${place}: the folder ${op} is listed twice; take out one of the lines")
    endif()
    foreach(file "${op}.hpp" "${op}_cpu.cpp")
      if(NOT EXISTS "${root}/${op}/${file}")
        message(FATAL_ERROR "${place}: ${line}: there is no ${op}/${file} beside the list\n"
                            "Write the folder's name as it is, write that file, or take out the line")
      endif()
    endforeach()
    list(APPEND folders "${op}")
    list(APPEND definitions "${definition}")
    list(APPEND lines "#line ${number} \"${list}\"")
  endwhile()
  if(NOT folders)
    message(FATAL_ERROR "${list}: it lists no operator\nWrite a line for each: ${form}")
  endif()
  set(operator_root "${root}" PARENT_SCOPE)
  set(operator_stem "${stem}" PARENT_SCOPE)
  set(operator_folders "${folders}" PARENT_SCOPE)
  set(operator_definitions "${definitions}" PARENT_SCOPE)
  set(operator_lines "${lines}" PARENT_SCOPE)
endfunction()

# graft_warn_of_unlisted(<list>): warns of each folder next to the list that has a definition and that no list there names. A
# comment with the operator's line prevents the warning: the operator is then left out on purpose.
function(graft_warn_of_unlisted list)
  get_filename_component(list "${list}" ABSOLUTE)
  get_filename_component(root "${list}" DIRECTORY)
  file(GLOB lists CONFIGURE_DEPENDS "${root}/*.inc")
  set(named "")
  foreach(each IN LISTS lists)
    file(READ "${each}" text)
    string(APPEND named "${text}")
  endforeach()
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE "${root}" "${root}/*/*.hpp")
  foreach(header IN LISTS headers)
    if(NOT header MATCHES "^([a-z0-9_]+)/([a-z0-9_]+)\\.hpp$" OR NOT CMAKE_MATCH_1 STREQUAL CMAKE_MATCH_2)
      continue()
    endif()
    set(op "${CMAKE_MATCH_1}")
    file(READ "${root}/${header}" text)
    if(named MATCHES "GRAFT_OPERATOR\\( *${op} *," OR NOT text MATCHES "struct ([A-Za-z0-9_]+)[^;{]*{[^}]*static constexpr auto name = \"")
      continue()
    endif()
    set(definition "${CMAKE_MATCH_1}")
    string(REGEX MATCH "namespace ([A-Za-z0-9_:]+)" ignored "${text}")
    message(WARNING "${list}: it does not list ${header}, so the library is without that operator\n"
                    "Add the line GRAFT_OPERATOR(${op}, ${CMAKE_MATCH_1}::${definition}), or add it as a comment to leave the operator out")
  endforeach()
endfunction()

# graft_stop_at_first_error(<source>): limits a generated source to its first compiler error, which names the line of the list
# with an unknown class. The following errors only result from it.
function(graft_stop_at_first_error source)
  set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS -Wfatal-errors)
endfunction()

# graft_join_sources(<result> <name> BATCH <number> SOURCES <file>...): returns sources that replace those of an operator. If
# CMAKE_UNITY_BUILD is on, each includes up to BATCH of them. Sources of different operators are not joined, because they may
# define the same names. nvcc reads the headers of a file three times, which takes longer than most kernels; CMake joins CUDA
# sources only from 3.31 on. As for CMake's own joined sources, the folder is called Unity, by which tools/tidy.py recognizes
# them.
function(graft_join_sources result name)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "BATCH" "SOURCES")
  set(joined "")
  set(rest ${ARG_SOURCES})
  while(CMAKE_UNITY_BUILD AND rest)
    list(LENGTH joined number)
    list(SUBLIST rest 0 ${ARG_BATCH} files)
    list(REMOVE_ITEM rest ${files})
    list(LENGTH files count)
    if(count EQUAL 1)
      list(APPEND joined ${files})
      continue()
    endif()
    list(GET files 0 first)
    get_filename_component(extension "${first}" LAST_EXT)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/Unity/${name}_${number}${extension}")
    list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"")
    list(JOIN files "\n" includes)
    file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT "// Generated by cmake/GraftOperators.cmake: sources of one operator.\n@includes@\n")
    list(APPEND joined "${source}")
  endwhile()
  set(${result} ${joined} ${rest} PARENT_SCOPE)
endfunction()

# graft_operator_sources(<list> DEFINITIONS <result> KERNELS <result>): returns the sources of every operator on the list. A
# folder next to the list contains <op>.hpp, <op>_cpu.cpp, <op>.cpp if the definition needs it, and <op>_cuda.cu with further
# .cu files. DEFINITIONS are the definitions with their reference kernels, which need no CUDA, and the generated source of
# graft::linked_operators() and graft::linked_fusions(), which returns the rules in <op>_fusion.yaml. KERNELS define
# graft::register_cuda_kernels(); the list is empty in a build without CUDA.
#
# Hopper's own instructions exist only in code for sm_90a: files *_sm90a.cu are compiled for it too, with GRAFT_SM90A=1,
# where the build has code for 90.
function(graft_operator_sources list)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "DEFINITIONS;KERNELS" "")
  graft_read_operators("${list}")
  set(sources "")
  set(definition_sources "")
  set(all_kernels "")
  set(includes "")
  set(entries "")
  set(registrations "")
  set(fusions "")
  set(fusion_count 0)
  foreach(op definition line IN ZIP_LISTS operator_folders operator_definitions operator_lines)
    set(path "${operator_root}/${op}/${op}")
    list(APPEND sources "${path}_cpu.cpp")
    # A pattern finds a file that is written later when the build runs again.
    file(GLOB fusion CONFIGURE_DEPENDS "${path}_fusion.yaml")
    if(fusion)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${fusion}")
      file(READ "${fusion}" rules)
      string(APPEND fusions "      {\"${op}/${op}_fusion.yaml\", R\"graft(${rules})graft\"},\n")
      math(EXPR fusion_count "${fusion_count} + 1")
    endif()
    if(EXISTS "${path}.cpp")
      list(APPEND sources "${path}.cpp")
      list(APPEND definition_sources "${path}.cpp")
    endif()
    if(GRAFT_WITH_CUDA)
      file(GLOB kernels CONFIGURE_DEPENDS "${operator_root}/${op}/*.cu")
      set(hopper_kernels ${kernels})
      list(FILTER hopper_kernels INCLUDE REGEX "_sm90a\\.cu$")
      list(FILTER kernels EXCLUDE REGEX "_sm90a\\.cu$")
      graft_join_sources(kernels ${op}_kernels BATCH 4 SOURCES ${kernels})
      list(APPEND all_kernels ${kernels} ${hopper_kernels})
      if(hopper_kernels AND ";${CMAKE_CUDA_ARCHITECTURES};" MATCHES ";90(-[a-z]+)?;")
        set_source_files_properties(${hopper_kernels} PROPERTIES
          COMPILE_OPTIONS "--generate-code=arch=compute_90a,code=[sm_90a]" COMPILE_DEFINITIONS GRAFT_SM90A=1)
      endif()
    endif()
    string(APPEND includes "#include \"${path}.hpp\"\n")
    string(APPEND entries "${line}\n      &graft::operator_type<${definition}>(),\n")
    string(APPEND registrations "${line}\n    graft::detail::register_cuda_kernels_of<${definition}>();\n")
  endforeach()
  set(registry "${CMAKE_CURRENT_BINARY_DIR}/${operator_stem}_registry.cpp")
  # Two operators may define the same names, so their sources are not joined. A program with its own list, such as some tests,
  # leaves out the registry.
  set_source_files_properties(${sources} ${all_kernels} "${registry}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  graft_stop_at_first_error("${registry}")
  file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [=[
// Generated from the operator list by cmake/GraftOperators.cmake.
#include <array>

#include "graft/operator/registry.hpp"
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
  # Definitions compute shapes and names; code that loops over data is in <op>_cpu.cpp. The registry is not compiled
  # with -O1: it then has inline functions for which mold links it in addition to the list of a test.
  set_source_files_properties(${definition_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")
  set(${ARG_DEFINITIONS} "${sources}" "${registry}" PARENT_SCOPE)
  if(NOT GRAFT_WITH_CUDA)
    set(${ARG_KERNELS} "" PARENT_SCOPE)
    return()
  endif()
  set(registry "${CMAKE_CURRENT_BINARY_DIR}/${operator_stem}_cuda_registry.cpp")
  graft_stop_at_first_error("${registry}")
  file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [=[
// Generated from the operator list by cmake/GraftOperators.cmake.
#include "graft/operator/registry.hpp"
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

# graft_operator_fusions(<result> <list>): returns the sources that define graft::passes::operator_fusions(), the passes that
# fuse nodes of networks to the operators on the list. If an operator has a fusion, <op>_fusion.cpp defines <op>_fusion, a
# graft::passes::OperatorFusion (src/passes/operator_fusion.hpp); a long fusion has further files in the folder fusion/.
function(graft_operator_fusions result list)
  graft_read_operators("${list}")
  set(sources "")
  set(declarations "")
  set(entries "")
  set(count 0)
  foreach(op IN LISTS operator_folders)
    # A pattern finds a fusion that is written later when the build runs again.
    file(GLOB fusion CONFIGURE_DEPENDS "${operator_root}/${op}/${op}_fusion.cpp")
    if(fusion)
      file(GLOB parts CONFIGURE_DEPENDS "${operator_root}/${op}/fusion/*.cpp")
      graft_join_sources(joined ${op}_fusion BATCH 16 SOURCES ${fusion} ${parts})
      list(APPEND sources ${joined})
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

# Returns the folder of Graft's sources: in its checkout, or in an installation.
function(graft_source_root variable)
  if(PROJECT_NAME STREQUAL "graft")
    set(${variable} "${PROJECT_SOURCE_DIR}/src" PARENT_SCOPE)
  else()
    set(${variable} "${GRAFT_SOURCE_DIR}" PARENT_SCOPE)
  endif()
endfunction()

# graft_headers_digest(<result>): returns a digest of the headers that operators include. A library of operators and a program
# that loads it exchange C++ objects, so both must be compiled with the same headers.
function(graft_headers_digest result)
  if(PROJECT_NAME STREQUAL "graft")
    set(folder "${PROJECT_SOURCE_DIR}/include/graft")
  else()
    set(folder "${GRAFT_INCLUDE_DIR}/graft")
  endif()
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.hpp" "${folder}/operator/*.hpp")
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
# Adds a library of operators, lib<name>.so, from a list or from library targets that were created from a list. Two programs
# load it:
# TensorRT, as a plugin library with a creator for every operator, and `graft --operators`, which finds reference kernels
# and functions in it (src/operator_library/exported.hpp). It does not link TensorRT and contains its C++ and
# CUDA runtimes, so that it can be copied to a machine that has only TensorRT. Without NAMESPACE its plugins are in the empty
# namespace, in which TensorRT finds them for a node of any domain. Without a CUDA compiler the library has no plugins, and
# only `graft` loads it.
#
# Outside Graft, the program of the same installation loads each library after it is linked, so that a fusion that it cannot
# read ends the build with file, line and column. GRAFT_CHECK_LIBRARIES=OFF disables this for a library that the program
# cannot load, such as a library for another machine or with a sanitizer.
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
    # The operators are an object library, so that their tests do not compile the kernels again.
    graft_operator_sources("${ARG_OPERATORS}" DEFINITIONS sources KERNELS kernels)
    graft_read_operators("${ARG_OPERATORS}")
    if(NOT PROJECT_NAME STREQUAL "graft")
      graft_warn_of_unlisted("${ARG_OPERATORS}")
    endif()
    get_filename_component(list "${ARG_OPERATORS}" ABSOLUTE)
    get_filename_component(folder "${list}" DIRECTORY)
    add_library(${name}_operators OBJECT ${sources} ${kernels} "${root}/ops/operator_case.cpp")
    target_include_directories(${name}_operators PUBLIC "${folder}" "${root}")
    target_link_libraries(${name}_operators PUBLIC graft::core Eigen3::Eigen)
    if(GRAFT_WITH_CUDA)
      target_link_libraries(${name}_operators PUBLIC graft::kernels CUDA::cudart_static)
    endif()
    set_target_properties(${name}_operators PROPERTIES CXX_STANDARD 20 CUDA_STANDARD 20 POSITION_INDEPENDENT_CODE ON
                          CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden GRAFT_OPERATOR_LIST "${list}")
    target_link_libraries(${name} PRIVATE ${name}_operators)
    graft_operator_timings(timings "${list}")
    target_sources(${name} PRIVATE "${timings}" "${root}/ops/random_cases.cpp" "${root}/operator_library/timings_exports.cpp")
    target_compile_definitions(${name} PRIVATE GRAFT_HAS_KERNELS=$<BOOL:${GRAFT_WITH_CUDA}>)
  endif()
  list(JOIN operator_folders "," folders)
  target_compile_definitions(${name} PRIVATE GRAFT_OPERATOR_FOLDERS="${folders}")
  target_include_directories(${name} PRIVATE "${root}")
  target_link_libraries(${name} PRIVATE graft::core)
  # --strip-all removes the names of symbols that are not exported, a tenth of Graft's own library. --gc-sections removes the
  # unused parts of the standard library and of CUDA's runtime, a twentieth.
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc "LINKER:--version-script=${export_list}" LINKER:--no-undefined
                      LINKER:--gc-sections $<$<CONFIG:Release>:LINKER:--strip-all>)
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CUDA_STANDARD 20 CXX_VISIBILITY_PRESET hidden
                        CUDA_VISIBILITY_PRESET hidden LINK_DEPENDS "${export_list}" SKIP_BUILD_RPATH ON)
  if(DEFINED GRAFT_PROGRAM AND NOT CMAKE_CROSSCOMPILING AND (NOT DEFINED GRAFT_CHECK_LIBRARIES OR GRAFT_CHECK_LIBRARIES))
    add_custom_command(TARGET ${name} POST_BUILD COMMAND "${GRAFT_PROGRAM}" ops --operators "$<TARGET_FILE:${name}>" > /dev/null
                       COMMENT "Checking the functions and fusions of ${name}" VERBATIM)
  endif()
endfunction()

# graft_add_operator_tests(<plugin library> [OPERATORS <list>] [COMMANDS <script>])
#
# Adds two ctest tests for a library that was created from a list. One program runs every case in the operators'
# <op>_cases.hpp (src/operator_library/case_tests.cpp): <plugin library>_cases runs them on the CPU, and
# <plugin library>_cases_gpu compares the CUDA kernels with the reference kernels. Without a GPU the second test is skipped,
# and ctest first prints the reason and what to do. The function is for operators outside Graft, which has its own tests.
# OPERATORS lists the operators that have cases, if not all operators of the library have them.
#
# COMMANDS is a Python script that runs graft's commands with the library, as the test <plugin library>_commands, which is
# skipped if the script exits with 77. `<script> untested` prints what this test leaves out, and why; ctest prints it first.
function(graft_add_operator_tests library)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "OPERATORS;COMMANDS" "")
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
  add_executable(${library}_cases "${cases}" "${root}/operator_library/case_tests.cpp"
                 "${root}/operator_library/written_cases.cpp" "${root}/operator_library/${gpu}")
  target_link_libraries(${library}_cases PRIVATE ${library}_operators graft::registry)
  # The static runtimes allow to copy the program to a machine with a GPU.
  target_link_options(${library}_cases PRIVATE -static-libstdc++ -static-libgcc)
  list(JOIN CMAKE_CUDA_ARCHITECTURES ", " compiled_for)
  target_compile_definitions(${library}_cases PRIVATE GRAFT_COMPILED_FOR="${compiled_for}")
  set_target_properties(${library}_cases PROPERTIES CXX_STANDARD 20)
  add_test(NAME ${library}_cases COMMAND ${library}_cases cpu)
  add_test(NAME ${library}_cases_gpu COMMAND ${library}_cases gpu)
  set_tests_properties(${library}_cases_gpu PROPERTIES SKIP_RETURN_CODE 77 LABELS gpu)
  set(tests "${library}_cases_gpu will be skipped:" "${library}_commands")
  set(programs "\"$<TARGET_FILE:${library}_cases>\"")
  if(ARG_COMMANDS)
    graft_choose_python(python)
    get_filename_component(script "${ARG_COMMANDS}" ABSOLUTE)
    set(environment "GRAFT_BIN=${GRAFT_PROGRAM}" "LIBRARY=$<TARGET_FILE:${library}>"
        "CASES=$<TARGET_FILE:${library}_cases>" "HAS_PLUGINS=$<BOOL:${GRAFT_WITH_CUDA}>")
    add_test(NAME ${library}_commands COMMAND "${python}" "${script}")
    set_tests_properties(${library}_commands PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
    list(JOIN environment "\" \"" environment)
    list(APPEND programs "\"${CMAKE_COMMAND}\" -E env \"${environment}\" \"${python}\" \"${script}\"")
  endif()
  # ctest prints only the name of a test that is skipped or that leaves something out, so the generated file prints why.
  get_property(has_configurations GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(PROJECT_NAME STREQUAL "graft" OR has_configurations)
    return()
  endif()
  set(note "${CMAKE_CURRENT_BINARY_DIR}/${library}_untested.cmake")
  string(CONCAT content "# Generated by cmake/GraftOperators.cmake; ctest reads it.\n"
                        "if(NOT EXISTS \"$<TARGET_FILE:${library}_cases>\" OR NOT EXISTS \"$<TARGET_FILE:${library}>\")\n"
                        "  message(\"${library} is not built, or its build has failed, so that its tests fail\\nBuild it: cmake --build ${CMAKE_BINARY_DIR}\")\n"
                        "else()\n")
  # ctest prints what `message` writes to stderr; a process writes to stdout, where the results of the tests are.
  foreach(program test IN ZIP_LISTS programs tests)
    string(APPEND content "  execute_process(COMMAND ${program} untested OUTPUT_VARIABLE untested OUTPUT_STRIP_TRAILING_WHITESPACE)\n"
                          "  if(untested)\n    execute_process(COMMAND \"${CMAKE_COMMAND}\" -E echo \"${test} \${untested}\")\n  endif()\n")
  endforeach()
  file(GENERATE OUTPUT "${note}" CONTENT "${content}endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${note}")
endfunction()

# graft_choose_python(<result>): returns the interpreter that GRAFT_PYTHON names, as for graft itself; otherwise that of the
# environment with the wheel that CMake found, which has the packages that the tests need; otherwise the active interpreter.
function(graft_choose_python result)
  if(NOT "$ENV{GRAFT_PYTHON}" STREQUAL "")
    set(${result} "$ENV{GRAFT_PYTHON}" PARENT_SCOPE)
  elseif(EXISTS "${GRAFT_WHEEL_PYTHON}")
    set(${result} "${GRAFT_WHEEL_PYTHON}" PARENT_SCOPE)
  else()
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    set(${result} "${Python3_EXECUTABLE}" PARENT_SCOPE)
  endif()
endfunction()

# graft_add_stand_ins(<name> PLUGINS <plugin library>)
#
# Adds lib<name>.so, a small TensorRT plugin library that accompanies a plugin library. It has a creator for every plugin name
# of another library for which the operators stand in, if that name is free. See src/adapters/tensorrt/stand_ins.cpp.
function(graft_add_stand_ins name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PLUGINS" "")
  graft_add_other_names(${name} PLUGINS ${ARG_PLUGINS} CREATORS graft_stand_ins)
endfunction()

# graft_add_onnx_names(<name> PLUGINS <plugin library>): adds such a library with a creator for every standard ONNX operator
# that the library's operators compute, under its ONNX name.
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
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc "LINKER:--version-script=${export_list}" LINKER:--no-undefined
                      LINKER:--gc-sections)
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CXX_VISIBILITY_PRESET hidden LINK_DEPENDS "${export_list}"
                        BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# graft_list_operators(<list> KIND <kind> TYPE <type> ENTRY <expression> RESULT <result>): the source that defines
# graft::ops::operator_<kind>(), which returns a <type> for each operator on the list. It includes every operator's
# <op>_cases.hpp, so an operator without cases is a compiler error; OPTIONAL leaves such operators out. In the expression,
# DEFINITION stands for the definition and FILE for the name of that file.
function(graft_list_operators list)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "OPTIONAL" "KIND;TYPE;ENTRY;RESULT" "")
  graft_read_operators("${list}")
  set(includes "")
  set(entries "")
  foreach(op definition line IN ZIP_LISTS operator_folders operator_definitions operator_lines)
    # A pattern finds cases that are written later when the build runs again.
    file(GLOB cases CONFIGURE_DEPENDS "${operator_root}/${op}/${op}_cases.hpp")
    if(ARG_OPTIONAL AND NOT cases)
      continue()
    endif()
    string(REPLACE "DEFINITION" "${definition}" entry "${ARG_ENTRY}")
    string(REPLACE "FILE" "${op}/${op}_cases.hpp" entry "${entry}")
    string(APPEND includes "#include \"${operator_root}/${op}/${op}_cases.hpp\"\n")
    string(APPEND entries "${line}\n      {&graft::operator_type<${definition}>(), ${entry}},\n")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${operator_stem}_${ARG_KIND}.cpp")
  graft_stop_at_first_error("${source}")
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
  graft_list_operators("${list}" KIND cases TYPE OperatorCases ENTRY "graft::ops::made_in(\"FILE\", [] { return cases(DEFINITION{}); })" RESULT source)
  set(${result} "${source}" PARENT_SCOPE)
endfunction()

# graft_operator_timings(<result> <list>): the source that defines graft::ops::operator_timings(), the timed cases
# of the operators on the list that have cases. They are separate from the other cases, so that a program that times
# operators does not need these.
function(graft_operator_timings result list)
  graft_list_operators("${list}" OPTIONAL KIND timings TYPE OperatorTimings ENTRY "graft::ops::timings_of<DEFINITION>(), graft::ops::draw_of<DEFINITION>()" RESULT source)
  set(${result} "${source}" PARENT_SCOPE)
endfunction()
