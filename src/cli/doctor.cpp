// graft doctor: reports which programs and libraries are usable and which are missing.
#include "toolkit/doctor.hpp"

#include <string>
#include <vector>

#include "cli/engine_command.hpp"
#include "cli/program.hpp"
#include "present/json/fields.hpp"
#include "present/text/doctor_text.hpp"

namespace graft::cli {
namespace {

Exit doctor(const Console& console) {
  const report::DoctorReport report =
      toolkit::diagnose([&](const std::vector<std::string>& question) { return ask_engine_driver(console, question); });
  console.print(present::doctor_text(report));
  console.result(present::json_of_report(report));
  return report.is_complete() ? Exit::done : Exit::missing_tool;
}

}  // namespace

void add_doctor(Program& program) {
  program.add_command("doctor", "reports what is installed and usable, and what is missing", "graft doctor", doctor);
}

}  // namespace graft::cli
