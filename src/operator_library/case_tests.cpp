// Tests the operators of a library by their cases: LIBRARY_cases [cpu|gpu|untested|write FOLDER].
// graft_add_operator_tests compiles this file together with the library's operators.
//
// cpu: checks that cases marked as refused are refused, and that the reference kernel computes the same in every type
// as in f32. gpu: compares every CUDA kernel that supports a case with the reference kernel; exits with 77, which ctest
// reports as skipped, if there is no GPU or the build has no CUDA. Without an argument, both. untested: prints why the
// GPU tests would be skipped, and runs nothing. write: writes cases with the results of the reference kernel, with
// which the project's Python test compares the operators' functions (operator_library/written_cases.hpp).
#include "operator_library/case_tests.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "graft/operator/registry.hpp"
#include "operator_library/written_cases.hpp"
#include "ops/operator_case.hpp"

namespace {

/// The case that is running, such as "FAILED Name f32_1 on the CPU". The signal handler prints it.
std::string running;

void end_by(int signal) {
  static_cast<void>(std::signal(signal, SIG_DFL));
  static_cast<void>(std::raise(signal));
}

/// Prints the running case before a signal ends the program, as after a kernel that writes out of bounds.
void name_running_case(int signal) {
  constexpr std::string_view what =
      ": the program crashed while the kernel ran; this case or an earlier one probably reads or writes out of "
      "bounds\n";
  if (running.empty()) return end_by(signal);
  for (const std::string_view text : {std::string_view(running), what}) {
    if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) break;
  }
  end_by(signal);
}

/// The numbers of tested and of failed cases.
struct Tally {
  std::string where;
  int cases = 0;
  int failures = 0;

  /// Runs `check` on each case of an operator, adds to `cases` and `failures`, and prints the failures. `check` returns
  /// nothing for a case to skip, an empty string for success, and otherwise the failure. A single mistake fails most
  /// cases, so only the first three failures are printed in full.
  template <class Check>
  void run(const graft::ops::OperatorCases& all, const Check& check) {
    constexpr int printed = 3;
    const std::string name(all.type->name);
    int failed = 0;
    for (const graft::ops::OperatorCase& test : all.cases) {
      running = "FAILED " + name + " " + test.name + " on the " + where;
      const std::optional<std::string> wrong = check(test);
      const std::string which = std::exchange(running, "");
      if (!wrong) continue;
      ++cases;
      if (wrong->empty()) continue;
      if (++failed <= printed) std::printf("%s: %s\n", which.c_str(), wrong->c_str());
    }
    failures += failed;
    if (failed > printed) {
      std::printf("FAILED %s in %d more cases on the %s\n", name.c_str(), failed - printed, where.c_str());
    }
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  const std::string_view only = arguments.size() > 1 ? arguments[1] : "";
  if (only == "write" && arguments.size() == 3) {
    graft::operator_library::write_cases(arguments[2]);
    return 0;
  }
  if (arguments.size() > 2 || !(only.empty() || only == "cpu" || only == "gpu" || only == "untested")) {
    std::printf("usage: %s [cpu|gpu|untested|write FOLDER]\n", arguments[0]);
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
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    static_cast<void>(std::signal(signal, name_running_case));
  }
  // Line buffering keeps every printed line if a kernel ends the program.
  static_cast<void>(std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ));
  Tally cpu{.where = "CPU"};
  Tally gpu{.where = "GPU"};
  for (const graft::ops::OperatorCases& all : graft::ops::operator_cases()) {
    const std::string lacking = with_cpu ? graft::ops::check_coverage(all) : "";
    if (!lacking.empty()) {
      ++cpu.failures;
      std::printf("FAILED cases of %s: %s\n", std::string(all.type->name).c_str(), lacking.c_str());
    }
    if (with_cpu) cpu.run(all, [](const auto& test) { return std::optional(graft::ops::check_on_cpu(test)); });
    if (with_gpu) {
      gpu.run(all, [](const auto& test) {
        const bool runs = test.refused.empty() && !test.large;
        return runs ? std::optional(graft::operator_library::check_on_gpu(test)) : std::nullopt;
      });
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
