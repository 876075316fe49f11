// Case tests of a library that was built without CUDA.
#include "operator_library/case_tests.hpp"

namespace graft::operator_library {

std::string why_no_gpu(const std::string& /*program*/) {
  return "this build is without CUDA, so it has no CUDA kernels\nInstall nvcc, and configure and build again without "
         "-DGRAFT_CUDA=OFF in an empty build folder";
}
std::string check_on_gpu(const ops::OperatorCase& /*test*/) { return why_no_gpu(""); }

}  // namespace graft::operator_library
