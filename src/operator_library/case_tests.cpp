// Tests the operators of a library by their cases: LIBRARY_cases [cpu|gpu|untested]. graft_add_operator_tests compiles
// it beside them.
//
// cpu: what has to be refused is, and the reference kernel computes in every type what it computes in f32. gpu: every
// CUDA kernel that takes the case, against the reference kernel; 77, which ctest knows for skipped, where there is no
// GPU or the build is without CUDA. Without an argument both. untested: says why the GPU's would be skipped, and runs
// nothing.
#include "operator_library/case_tests.hpp"

#include <cstdio>
#include <exception>
#include <span>
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

int main(int argc, char** argv) try {
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  const std::string_view only = arguments.size() > 1 ? arguments[1] : "";
  if (arguments.size() > 2 || !(only.empty() || only == "cpu" || only == "gpu" || only == "untested")) {
    std::printf("usage: %s [cpu|gpu|untested]\n", arguments[0]);
    return 2;
  }
  const std::string untested = only == "cpu" ? "" : graft::operator_library::why_no_gpu(arguments[0]);
  if (only == "untested") {
    std::printf("%s", untested.c_str());
    return 0;
  }
  const bool with_cpu = only != "gpu";
  const bool with_gpu = only != "cpu" && untested.empty();
  if (const graft::Status status = graft::check_operators(graft::linked_operators()); !status.ok()) {
    std::printf("FAILED: %s\n", status.message().c_str());
    return 1;
  }
  Tally cpu;
  Tally gpu;
  for (const graft::ops::OperatorCases& all : graft::ops::operator_cases()) {
    const std::string lacking = with_cpu ? graft::ops::check_coverage(all) : "";
    if (!lacking.empty()) {
      ++cpu.failures;
      std::printf("FAILED cases of %s: %s\n", std::string(all.type->name).c_str(), lacking.c_str());
    }
    for (const graft::ops::OperatorCase& test : all.cases) {
      if (with_cpu) cpu.add(test, "CPU", graft::ops::check_on_cpu(test));
      if (with_gpu && test.refused.empty() && !test.large) {
        gpu.add(test, "GPU", graft::operator_library::check_on_gpu(test));
      }
    }
  }
  if (with_cpu) std::printf("CPU: %d cases, %d failures\n", cpu.cases, cpu.failures);
  if (with_gpu) std::printf("GPU: %d cases, %d failures\n", gpu.cases, gpu.failures);
  if (!untested.empty()) std::printf("GPU: skipped: %s\n", untested.c_str());
  if (cpu.failures + gpu.failures > 0) return 1;
  constexpr int skipped = 77;
  return untested.empty() ? 0 : skipped;
} catch (const std::exception& error) {
  std::printf("FAILED: %s\n", error.what());
  return 1;
}
