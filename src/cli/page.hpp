// What the pages of all commands (--report) share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output_files.hpp"
#include "cli/program.hpp"
#include "graph/model.hpp"
#include "report/report.hpp"

namespace graft::cli {

/// --report FILE. `shows` says what is on the page.
void add_report_option(CLI::App& command, std::string& page, const std::string& shows);
/// Throws Error where the page could not be written; before long work. Nothing without --report.
void check_report(const std::string& page);
/// Page and JSON, for check_files_apart.
[[nodiscard]] std::vector<NamedFile> report_files(const std::string& page);
/// Writes page and JSON, and says so.
void write_report(const Console& console, const report::Report& report, const std::string& page);

[[nodiscard]] report::Report new_report(std::string command, std::string title);
/// With the file's name as its title.
[[nodiscard]] report::Report new_model_report(std::string command, const std::string& file);
/// "input  image: f32[1, 3, 224, 224]".
void add_ends(report::Report& report, const Model& model);
/// A cell of a column of nodes or, for one that is not drawn, its name.
[[nodiscard]] report::Cell node_cell(const std::optional<report::Place>& place, const std::string& name);

}  // namespace graft::cli
