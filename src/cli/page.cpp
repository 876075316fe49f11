// Adds the option --report and writes pages.
#include "cli/page.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/interrupts.hpp"

namespace graft::cli {

void add_report_option(Command& command, std::string& page, const std::string& shows) {
  command.add_option("--report", page, fmt::format("HTML page to write, and next to it its data as JSON: {}", shows))
      ->type_name("FILE");
}

void check_report(const std::string& page) {
  if (page.empty()) return;
  const DeferInterrupts defer;
  html::check_writable(page);
}

std::vector<NamedFile> report_files(const std::string& page) {
  if (page.empty()) return {};
  return {{"--report", page}, {"the JSON file of --report,", html::json_beside(page).string()}};
}

void write_report(const Console& console, html::Report report, const std::string& page) {
  if (page.empty()) return;
  report.command_line = console.command_line;
  {
    const DeferInterrupts defer;
    html::write(report, page);
  }
  console.say(fmt::format("wrote {}", console.paint(page, Color::strong)));
}

}  // namespace graft::cli
