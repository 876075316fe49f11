# The toolchain of the preset aarch64: compiles for 64-bit ARM on Linux with Debian's cross compiler, and with the sysroot and
# the wheels that `tools/setup aarch64` installed in .deps/aarch64. nvcc and protoc run on the machine that compiles; the
# programs that the build itself starts run in qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
get_filename_component(GRAFT_DEPS_DIR "${CMAKE_CURRENT_LIST_DIR}/../.deps/aarch64" REALPATH)
set(GRAFT_DEPS_DIR "${GRAFT_DEPS_DIR}" CACHE PATH "What tools/setup made")
set(CMAKE_SYSROOT "${GRAFT_DEPS_DIR}/root")
if(NOT EXISTS "${CMAKE_SYSROOT}/usr/include")
  message(FATAL_ERROR "${CMAKE_SYSROOT} is missing. Run `tools/setup aarch64`.")
endif()

set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CUDA_HOST_COMPILER aarch64-linux-gnu-g++)
# The nvcc of .deps/aarch64 links the CUDA runtime of aarch64; one on PATH links that of its own machine.
if(EXISTS "${GRAFT_DEPS_DIR}/cuda/bin/nvcc")
  set(CMAKE_CUDA_COMPILER "${GRAFT_DEPS_DIR}/cuda/bin/nvcc" CACHE FILEPATH "CUDA compiler")
else()
  set(GRAFT_CUDA OFF CACHE STRING "tools/setup aarch64 has installed no nvcc" FORCE)
endif()
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH "${CMAKE_SYSROOT}" "${GRAFT_DEPS_DIR}/cuda")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)  # The CMake packages of OpenVINO and nanobind are in wheels.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;${CMAKE_SYSROOT}")
# CMake searches for Python's headers where the interpreter says, which is a folder of the sysroot.
file(GLOB Python_INCLUDE_DIR "${CMAKE_SYSROOT}/usr/include/python3.*")
