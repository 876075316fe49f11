// The part of case_tests.cpp that runs on a GPU: case_tests_gpu.cpp, or case_tests_no_gpu.cpp in a build without CUDA.
#pragma once

#include <string>

#include "ops/operator_case.hpp"

namespace graft::operator_library {

/// Why no CUDA kernel can run here, and what to do to have them tested, with the program that tests them; empty where
/// they can. Registers the kernels.
[[nodiscard]] std::string why_no_gpu(const std::string& program);

/// Whether every kernel that takes the case computes what the reference kernel does. Empty, or what is wrong. Throws
/// std::runtime_error where the program has no code for the GPU.
[[nodiscard]] std::string check_on_gpu(const ops::OperatorCase& test);

}  // namespace graft::operator_library
