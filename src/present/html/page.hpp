// What the pages of all commands share.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "present/html/report.hpp"

namespace graft::present {

[[nodiscard]] report::Report new_report(std::string command, std::string title);
/// With the file's name as its title.
[[nodiscard]] report::Report new_model_report(std::string command, const std::string& file);
/// "input  image: f32[1, 3, 224, 224]".
void add_ends(report::Report& report, const onnx::Model& model);
/// A cell of a column of nodes or, for one that is not drawn, its name.
[[nodiscard]] report::Cell node_cell(const std::optional<report::Place>& place, const std::string& name);

}  // namespace graft::present
