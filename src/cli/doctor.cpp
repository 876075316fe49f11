// graft doctor: reports which programs and libraries are usable and which are missing.
#include "graft/toolkit/doctor.hpp"

#include "cli/engine_command.hpp"
#include "cli/interrupts.hpp"
#include "cli/program.hpp"
#include "cli/watch.hpp"
#include "present/json/fields.hpp"
#include "present/text/doctor_text.hpp"

namespace graft::cli {
namespace {

toolkit::DoctorReport diagnose(const Console& console) {
  const DeferInterrupts defer;
  Progress progress(console);
  return toolkit::diagnose({.on_log = log_of(console, progress), .watch = watch_of(progress)});
}

Exit doctor(const Console& console) {
  const toolkit::DoctorReport report = diagnose(console);
  warn_of(console, report.tensorrt_warnings);
  console.print(present::doctor_text(report));
  console.result(present::json_of_report(report));
  return report.is_complete() ? Exit::done : Exit::missing_tool;
}

}  // namespace

void add_doctor(Program& program) {
  program.add_command("doctor", "reports what is installed and usable, and what is missing", "graft doctor", doctor);
}

}  // namespace graft::cli
