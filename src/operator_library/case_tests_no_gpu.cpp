// Case tests of a library that was built without CUDA.
#include "operator_library/case_tests.hpp"

namespace graft::operator_library {

std::string why_no_gpu() { return "as this build is without CUDA"; }
std::string check_on_gpu(const ops::OperatorCase& /*test*/) { return why_no_gpu(); }

}  // namespace graft::operator_library
