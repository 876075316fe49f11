# Names the worker program, which runs OpenVINO in a process of its own (src/runtime/worker), in the tests' environment.
#
# A build with OpenVINO has the program. A build with sanitizers, which OpenVINO was not compiled for, sets
# GRAFT_ENGINE_WORKER=ON: it builds the program in a separate build folder, optimized and without sanitizers. That folder
# is next to this build folder and has the depth of the release preset's, so that the compiler cache, which uses relative
# paths, finds the objects of the release build.
set(graft_engine_worker "")
if(GRAFT_WITH_OPENVINO)
  set(graft_engine_worker "${GRAFT_OUTPUT_DIR}/libexec/graft_engine_worker")
elseif(GRAFT_ENGINE_WORKER)
  include(ExternalProject)
  set(graft_engine_worker "${PROJECT_BINARY_DIR}-worker/libexec/graft_engine_worker")
  ExternalProject_Add(graft_engine_worker
    SOURCE_DIR "${PROJECT_SOURCE_DIR}"
    BINARY_DIR "${PROJECT_BINARY_DIR}-worker"
    CMAKE_ARGS -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DGRAFT_DEPS_DIR=${GRAFT_DEPS_DIR}
               -DGRAFT_CUDA=OFF -DGRAFT_OPENVINO=ON -DGRAFT_TESTS=OFF -DGRAFT_INSTALL=OFF
    BUILD_COMMAND "${CMAKE_COMMAND}" --build <BINARY_DIR> --target graft_engine_worker
    BUILD_ALWAYS ON
    BUILD_BYPRODUCTS "${graft_engine_worker}"
    INSTALL_COMMAND "")
endif()
