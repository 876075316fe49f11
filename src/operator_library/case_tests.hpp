// The part of case_tests.cpp that needs a GPU: case_tests_gpu.cpp, or case_tests_no_gpu.cpp in a build without CUDA.
#pragma once

#include <string>

#include "ops/operator_case.hpp"

namespace graft::operator_library {

/// Returns why no CUDA kernel can run here and how to test the kernels with `program`, or an empty string if they can
/// run. Registers the kernels.
[[nodiscard]] std::string why_no_gpu(const std::string& program);

/// Compares every kernel that supports the case with the reference kernel. Returns an empty string, or the first
/// difference. Throws std::runtime_error if the program contains no code for the GPU.
[[nodiscard]] std::string check_on_gpu(const ops::OperatorCase& test);

}  // namespace graft::operator_library
