// The page of `graft auto`: its steps and checks, and the pages of the steps one below the other.
#pragma once

#include <filesystem>
#include <string>

#include "graft/report/auto.hpp"
#include "present/html/report.hpp"

namespace graft::present {

[[nodiscard]] html::Report auto_page(const report::AutoReport& report);

/// Writes report.html and report.json to the folder of the report, each completely or not at all. Returns the page.
/// `command_line` is shown on the page; it is empty if a program called the library.
std::filesystem::path write_auto(const report::AutoReport& report, const std::string& command_line = {});

}  // namespace graft::present
