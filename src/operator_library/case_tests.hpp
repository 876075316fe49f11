// The part of case_tests.cpp that runs on a GPU: case_tests_gpu.cpp, or case_tests_no_gpu.cpp in a build without CUDA.
#pragma once

#include <string>

#include "ops/operator_case.hpp"

namespace graft::operator_library {

/// Why no kernel can run here; empty where they can. Registers the kernels.
[[nodiscard]] std::string why_no_gpu();

/// Whether every kernel that takes the case computes what the reference kernel does. Empty, or what is wrong.
[[nodiscard]] std::string check_on_gpu(const ops::OperatorCase& test);

}  // namespace graft::operator_library
