# graft_add_test and graft_add_pytest: how a folder of tests registers itself with ctest.
#
# Labels: `gpu` needs a GPU; `large` needs memory or minutes. `make test` leaves out what this machine cannot run and says so.
include(GoogleTest)

# Builds only the test programs and their dependencies, which is all that a sanitizer run needs.
add_custom_target(graft_unit_tests)
if(TARGET graft_engine_worker)
  add_dependencies(graft_unit_tests graft_engine_worker)
endif()

# The one limit of time, which ends what hangs: twenty times what the longest test takes. Nothing inside a test is
# limited by the clock, so that a slow machine fails nothing.
set(GRAFT_HANG_GUARD 3600)

# The environment variables of every test: paths, and the folder where TensorRT-RTX finds its own library.
set(GRAFT_TEST_ENVIRONMENT
  "GRAFT_BIN=${GRAFT_OUTPUT_DIR}/bin/graft"
  "GRAFT_PLUGIN_LIBRARY=${GRAFT_OUTPUT_DIR}/lib/libgraft_plugins.so"
  "GRAFT_GOLDEN_DIR=${GRAFT_GOLDEN_DIR}"
  "GRAFT_ENGINE_WORKER=${graft_engine_worker}"
  "GRAFT_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
  "GRAFT_BUILD_DIR=${PROJECT_BINARY_DIR}"
  "GRAFT_PYTHON=${GRAFT_PYTHON}"
  "PYTHONPATH=${GRAFT_OUTPUT_DIR}/python"
  # Hundreds of tests start Python: each would compile Graft's modules again, and none may write into the sources. Where
  # the environment forbids bytecode, as images of containers do, a start of Python takes three times as long.
  "PYTHONPYCACHEPREFIX=${PROJECT_BINARY_DIR}/pycache"
  "PYTHONDONTWRITEBYTECODE="
  # NumPy's threads cost each start of Python as much again as NumPy itself: 132 ms of processor time, 76 without.
  "OPENBLAS_NUM_THREADS=1"
  "LD_LIBRARY_PATH=${GRAFT_DEPS_DIR}/lib-rtx"
  "UBSAN_OPTIONS=print_stacktrace=1")
# Projects that tests build have sources in common, in folders of which each test has its own: the compiler's cache takes
# all paths relative to where it runs.
if(GRAFT_CCACHE)
  list(APPEND GRAFT_TEST_ENVIRONMENT "CMAKE_CXX_COMPILER_LAUNCHER=${GRAFT_CCACHE}"
       "CMAKE_CUDA_COMPILER_LAUNCHER=${GRAFT_CCACHE}" "CCACHE_NOHASHDIR=true" "CCACHE_BASEDIR=/")
endif()

# graft_add_test(<name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...] [LONG <test>...]
#                [REPETITIVE <test>...])
#
# LONG names tests that take more than half a minute: they start first, since one that starts last has a core for itself.
# REPETITIVE names those that go the same way through the code hundreds of times: with sanitizers, which have seen it then,
# they are labeled `large`.
# A GoogleTest program in <build>/tests, each of its tests one ctest test. It is listed when ctest runs, not when it is
# linked, so that a program which needs a GPU can be built where there is none.
function(graft_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBRARIES;LABELS;LONG;REPETITIVE")
  if(NOT GRAFT_SANITIZE)
    set(ARG_REPETITIVE "")
  endif()
  graft_add_executable(${name} SOURCES ${ARG_SOURCES} LIBRARIES ${ARG_LIBRARIES} graft_test_support GTest::gtest_main
                       GTest::gmock)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}")
  # Compiled together: files of a folder that call their networks alike have namespaces of their own.
  # A test's own code is long to optimize and short to run.
  graft_compile_quickly(${name})
  add_dependencies(graft_unit_tests ${name})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)

  # gtest_discover_tests cannot pass a property that is a list, so ctest itself sets them, once it knows the tests.
  set(properties "${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake")
  file(CONFIGURE OUTPUT "${properties}" @ONLY CONTENT [=[
foreach(test IN LISTS @name@_TESTS)
  set_tests_properties("${test}" PROPERTIES TIMEOUT @GRAFT_HANG_GUARD@ LABELS "@ARG_LABELS@" ENVIRONMENT "@GRAFT_TEST_ENVIRONMENT@")
endforeach()
foreach(test IN ITEMS @ARG_LONG@)
  set_tests_properties("@name@.${test}" PROPERTIES COST 100)
endforeach()
foreach(test IN ITEMS @ARG_REPETITIVE@)
  set_tests_properties("@name@.${test}" PROPERTIES LABELS large)
endforeach()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${properties}")
endfunction()

# graft_link_with_gnu_ld(<program>): GNU ld, which machines without mold link with, looks at each static library once, in
# order, where mold looks at all again and again. A library that needs one before it fails this link.
function(graft_link_with_gnu_ld program)
  target_link_options(${program} PRIVATE -fuse-ld=bfd)
endfunction()

# graft_add_pytest(<name> FILES <file or folder>... [LABELS <label>...] [ENVIRONMENT <NAME=value>...] [COST <seconds>])
#
# One ctest test that runs pytest on the files; paths are relative to the calling folder. COST, the processor time that it
# takes, has the longest start first where ctest has not measured them yet. Left out with sanitizers, whose
# runtime cannot be loaded into a Python that was built without.
function(graft_add_pytest name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "COST" "FILES;LABELS;ENVIRONMENT")
  if(GRAFT_SANITIZE)
    return()
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 20)
  endif()
  set_property(DIRECTORY APPEND PROPERTY GRAFT_PYTEST_FILES ${ARG_FILES})
  add_test(NAME ${name}
    COMMAND "${GRAFT_PYTHON}" -m pytest -q -p no:cacheprovider ${ARG_FILES}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" COST ${ARG_COST} TIMEOUT ${GRAFT_HANG_GUARD} ENVIRONMENT "${GRAFT_TEST_ENVIRONMENT};${ARG_ENVIRONMENT}")
endfunction()
