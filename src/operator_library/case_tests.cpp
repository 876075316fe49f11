// Tests the operators of a library by their cases. graft_add_operator_tests compiles it beside them.
//
// CPU: what has to be refused is, and the reference kernel computes in every type what it computes in f32. GPU, in a
// build with CUDA where there is one: every kernel that takes the case, against the reference kernel.
#include "operator_library/case_tests.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "graft/registry.hpp"
#include "ops/operator_case.hpp"

namespace {

/// What a test of all cases came to.
struct Tally {
  int cases = 0;
  int failures = 0;

  void add(const graft::ops::OperatorCase& test, std::string_view where, const std::string& wrong) {
    ++cases;
    if (wrong.empty()) return;
    ++failures;
    std::printf("FAILED %s %s on the %s: %s\n", std::string(test.op->type().name).c_str(), test.name.c_str(),
                std::string(where).c_str(), wrong.c_str());
  }
};

}  // namespace

int main() try {
  if (const graft::Status status = graft::check_operators(graft::linked_operators()); !status.ok()) {
    std::printf("FAILED: %s\n", status.message().c_str());
    return 1;
  }
  Tally cpu;
  Tally gpu;
  const std::string no_gpu = graft::operator_library::why_no_gpu();
  for (const graft::ops::OperatorCases& all : graft::ops::operator_cases()) {
    if (const std::string lacking = graft::ops::check_coverage(all); !lacking.empty()) {
      ++cpu.failures;
      std::printf("FAILED cases of %s: %s\n", std::string(all.type->name).c_str(), lacking.c_str());
    }
    for (const graft::ops::OperatorCase& test : all.cases) {
      cpu.add(test, "CPU", graft::ops::check_on_cpu(test));
      if (no_gpu.empty() && test.refused.empty() && !test.large) {
        gpu.add(test, "GPU", graft::operator_library::check_on_gpu(test));
      }
    }
  }
  std::printf("CPU: %d cases, %d failures\n", cpu.cases, cpu.failures);
  if (no_gpu.empty()) {
    std::printf("GPU: %d cases, %d failures\n", gpu.cases, gpu.failures);
  } else {
    std::printf("GPU: not tested, %s\n", no_gpu.c_str());
  }
  return cpu.failures + gpu.failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("FAILED: %s\n", error.what());
  return 1;
}
