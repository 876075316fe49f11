# Chooses nvcc and the GPU architectures, then enables CUDA; sets GRAFT_WITH_CUDA and GRAFT_WITHOUT_CUDA_REASON.
#
# nvcc is searched for in CMAKE_CUDA_COMPILER, CUDACXX, PATH, /usr/local/cuda, and then in the wheels that tools/setup
# installed or that are installed next to Graft's wheel. As in tools/setup_wheels.py, an nvcc that is too old is skipped.
set(GRAFT_WITH_CUDA OFF)
set(GRAFT_WITHOUT_CUDA_REASON "GRAFT_CUDA=OFF")

function(graft_nvcc_version nvcc result)
  set(${result} "" PARENT_SCOPE)
  execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND text MATCHES "release ([0-9]+\\.[0-9]+)")
    set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

function(graft_find_nvcc)
  find_program(GRAFT_NVCC_ON_PATH nvcc)
  mark_as_advanced(GRAFT_NVCC_ON_PATH)
  foreach(nvcc "$ENV{CUDACXX}" "${GRAFT_NVCC_ON_PATH}" /usr/local/cuda/bin/nvcc "${GRAFT_DEPS_DIR}/cuda/bin/nvcc"
               "${GRAFT_CUDA_WHEELS}/bin/nvcc")
    if(nvcc AND EXISTS "${nvcc}")
      graft_nvcc_version("${nvcc}" version)
      if(version AND version VERSION_GREATER_EQUAL GRAFT_CUDA_MINIMUM)
        set(CMAKE_CUDA_COMPILER "${nvcc}" CACHE FILEPATH "CUDA compiler")
        return()
      endif()
    endif()
  endforeach()
endfunction()

# Sets `result` to the architectures to compile for: those in GRAFT_CUDA_ARCHITECTURES, where `all` stands for enough
# machine code and PTX for every GPU since Turing. If the variable is empty, they are those of this machine's GPUs. A machine
# without a GPU does not run the kernels: Graft's kernels are then compiled to PTX only, which takes a fraction of the time,
# and those of an external operator library for all GPUs.
function(graft_choose_architectures result)
  if(GRAFT_CUDA_ARCHITECTURES AND NOT GRAFT_CUDA_ARCHITECTURES STREQUAL "all")
    # Kernels query the GPU for its features. PTX of an older architecture, compiled for a newer GPU when it is loaded, would
    # lack features that the GPU reports (clusters, bf16 products). So only machine code is generated below 90.
    set(asked "")
    foreach(architecture IN LISTS GRAFT_CUDA_ARCHITECTURES)
      string(REGEX MATCH "^[0-9]+" number "${architecture}")
      if(number AND number LESS 90 AND architecture MATCHES "-virtual$")
        message(FATAL_ERROR "GRAFT_CUDA_ARCHITECTURES: ${architecture}; PTX is made from 90 on, below that ${number}-real is allowed")
      elseif(number AND number LESS 90 AND NOT architecture MATCHES "-real$")
        string(APPEND architecture "-real")
      endif()
      list(APPEND asked "${architecture}")
    endforeach()
    set(${result} "${asked}" PARENT_SCOPE)
    return()
  endif()

  execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "compute_[0-9]+" known "${known}")
  list(TRANSFORM known REPLACE "compute_" "")

  set(own "")
  find_program(GRAFT_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(GRAFT_NVIDIA_SMI)
  if(GRAFT_NVIDIA_SMI AND NOT GRAFT_CUDA_ARCHITECTURES STREQUAL "all")
    execute_process(COMMAND "${GRAFT_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${capabilities}")
      list(TRANSFORM capabilities REPLACE "\\." "")
      foreach(capability IN LISTS capabilities)
        if(capability IN_LIST known)
          list(APPEND own "${capability}-real")
        endif()
      endforeach()
      list(REMOVE_DUPLICATES own)
    endif()
  endif()
  if(own)
    set(${result} "${own}" PARENT_SCOPE)
    return()
  endif()

  if(NOT GRAFT_CUDA_ARCHITECTURES STREQUAL "all" AND PROJECT_NAME STREQUAL "graft")
    set(${result} "90-virtual" PARENT_SCOPE)
    return()
  endif()

  # sm_86 and sm_89 run the code of sm_80, sm_121 runs that of sm_120, and all other later GPUs run the PTX of 90. Each
  # further architecture would add a sixth to the longest compilation; GRAFT_CUDA_ARCHITECTURES can add it.
  set(candidates 75-real 80-real 90 120-real)
  # The GPUs of machines with 64-bit ARM: Orin, which runs no code of sm_80, GH200, GB200 and GB300, Thor, and GB10.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(candidates 87-real 90 100-real 110-real 121-real)
  endif()
  set(fat "")
  foreach(architecture IN LISTS candidates)
    string(REGEX MATCH "^[0-9]+" number "${architecture}")
    if(number IN_LIST known)
      list(APPEND fat "${architecture}")
    endif()
  endforeach()
  set(${result} "${fat}" PARENT_SCOPE)
endfunction()

if(NOT GRAFT_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER)
    graft_find_nvcc()
  endif()
  if(CMAKE_CUDA_COMPILER)
    graft_choose_architectures(CMAKE_CUDA_ARCHITECTURES)
    enable_language(CUDA)
    # CMake before 3.25.2 does not know that nvcc accepts C++20. The variables are set after enable_language(), because
    # CMake's own compiler check fails with them.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    # The toolkit of the wheels is found from the compiler. Only the static runtime is linked.
    get_filename_component(CUDAToolkit_ROOT "${CMAKE_CUDA_COMPILER}" DIRECTORY)
    get_filename_component(CUDAToolkit_ROOT "${CUDAToolkit_ROOT}" DIRECTORY)
    # In CMake 3.25.1 (Debian 12), FindCUDAToolkit links libnvToolsExt if the project requires CMake 3.25, and fails with
    # CUDA 13, which does not have this library.
    set(required_cmake "${CMAKE_MINIMUM_REQUIRED_VERSION}")
    set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_MINIMUM_REQUIRED_VERSION "${required_cmake}")
    set(GRAFT_WITH_CUDA ON)
  elseif(GRAFT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GRAFT_CUDA=ON, but no nvcc new enough is on PATH, in /usr/local/cuda or in ${GRAFT_DEPS_DIR}/cuda. "
                        "`make deps` installs one; GRAFT_CUDA=OFF builds everything else.")
  else()
    set(GRAFT_WITHOUT_CUDA_REASON "no nvcc found; `make deps` installs one")
  endif()
endif()
set(GRAFT_WITH_CUDA ${GRAFT_WITH_CUDA} CACHE INTERNAL "")
