# graft_add_test and graft_add_pytest: how a folder of tests registers itself with ctest.
#
# Labels: `gpu` needs a GPU; `large` needs memory or minutes. `make test` leaves out the tests that this machine cannot run, and
# reports them.
include(GoogleTest)

# Builds only the test programs and their dependencies, which is all that a sanitizer run needs.
add_custom_target(graft_unit_tests)
if(TARGET graft_engine_worker)
  add_dependencies(graft_unit_tests graft_engine_worker)
endif()

# The time limit in seconds that ends hanging tests: twenty times the time of the longest test. Tests have no other time limit,
# so that they do not fail on a slow machine.
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
  # Hundreds of tests start Python. They share compiled modules outside of the source folder. If the environment disables
  # bytecode, as container images do, a start of Python takes three times as long.
  "PYTHONPYCACHEPREFIX=${PROJECT_BINARY_DIR}/pycache"
  "PYTHONDONTWRITEBYTECODE="
  # Starting NumPy's threads nearly doubles the processor time of each start of Python: 132 ms with threads, 76 ms without.
  "OPENBLAS_NUM_THREADS=1"
  "LD_LIBRARY_PATH=${GRAFT_DEPS_DIR}/lib-rtx"
  "UBSAN_OPTIONS=print_stacktrace=1")
# Projects that tests build have common sources in a separate folder for each test. With relative paths the compiler cache
# recognizes these sources.
if(GRAFT_CCACHE)
  list(APPEND GRAFT_TEST_ENVIRONMENT "CMAKE_CXX_COMPILER_LAUNCHER=${GRAFT_CCACHE}"
       "CMAKE_CUDA_COMPILER_LAUNCHER=${GRAFT_CCACHE}" "CCACHE_NOHASHDIR=true" "CCACHE_BASEDIR=/")
endif()

# graft_add_test(<name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...] [LONG <test>...]
#                [REPETITIVE <test>...])
#
# Adds a GoogleTest program in <build>/tests, each of whose tests is a ctest test. The tests are listed when ctest runs, not
# when the program is linked, so that a program that needs a GPU can be built on a machine without one.
# LONG lists tests that take more than half a minute. They start first, because a long test that starts last keeps one core
# busy while the other cores are idle. REPETITIVE lists tests that run the same code hundreds of times, which tells sanitizers
# nothing new: with sanitizers they are labeled `large`.
function(graft_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBRARIES;LABELS;LONG;REPETITIVE")
  if(NOT GRAFT_SANITIZE)
    set(ARG_REPETITIVE "")
  endif()
  graft_add_executable(${name} SOURCES ${ARG_SOURCES} LIBRARIES ${ARG_LIBRARIES} graft_test_support GTest::gtest_main
                       GTest::gmock)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}")
  # The sources are compiled together, so files that define the same names have separate namespaces.
  # The code of a test takes longer to optimize than to run.
  graft_compile_quickly(${name})
  add_dependencies(graft_unit_tests ${name})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)

  # gtest_discover_tests cannot pass a property that is a list, so ctest sets such properties after it has listed the tests.
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

# graft_link_with_gnu_ld(<program>): links with GNU ld, as machines without mold do. GNU ld searches each static library once,
# in order, while mold searches all of them repeatedly. So this link fails if a library needs a library before it.
function(graft_link_with_gnu_ld program)
  target_link_options(${program} PRIVATE -fuse-ld=bfd)
endfunction()

# graft_add_pytest(<name> FILES <file or folder>... [LABELS <label>...] [ENVIRONMENT <NAME=value>...] [COST <seconds>])
#
# Adds a ctest test that runs pytest on the files; paths are relative to the calling folder. COST is the processor time of the
# test, by which the longest tests start first before ctest has measured them. The test is left out with sanitizers, whose
# runtime cannot be loaded into a Python that was built without them.
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
