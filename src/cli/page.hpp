// The option --report of all commands.
#pragma once

#include <string>
#include <vector>

#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "present/html/report.hpp"

namespace graft::cli {

/// Adds --report FILE, which sets `page` to the path of an HTML page. In help, `shows` says what the page shows.
void add_report_option(Command& command, std::string& page, const std::string& shows);
/// Throws Error if the page cannot be written. Commands call it before long work. Does nothing without --report.
void check_report(const std::string& page);
/// Returns the path of the page and of its JSON file, for check_files_apart; empty without --report.
[[nodiscard]] std::vector<NamedFile> report_files(const std::string& page);
/// Adds the command line to the report, writes the page and its JSON file, and reports the page on the console. Does
/// nothing without --report.
void write_report(const Console& console, html::Report report, const std::string& page);

}  // namespace graft::cli
