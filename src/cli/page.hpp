// The option --report of all commands.
#pragma once

#include <string>
#include <vector>

#include "cli/output_files.hpp"
#include "cli/program.hpp"
#include "present/html/report.hpp"

namespace graft::cli {

/// --report FILE. `shows` says what is on the page.
void add_report_option(Command& command, std::string& page, const std::string& shows);
/// Throws Error where the page could not be written; before long work. Nothing without --report.
void check_report(const std::string& page);
/// Page and JSON, for check_files_apart.
[[nodiscard]] std::vector<NamedFile> report_files(const std::string& page);
/// Writes page and JSON, and says so.
void write_report(const Console& console, const report::Report& report, const std::string& page);

}  // namespace graft::cli
