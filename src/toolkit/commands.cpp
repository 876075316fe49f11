// Composes commands, quoted for a shell.
#include "graft/toolkit/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/shell_quoted.hpp"
#include "operator_library/load.hpp"

namespace graft::toolkit {

std::string library_options() {
  std::string options;
  for (const OperatorLibrary& library : operator_libraries()) options += " --operators " + shell_path(library.file);
  return options;
}

std::string shape_options(const Shapes& shapes) {
  std::string options;
  for (const auto& [name, shape] : shapes) {
    std::vector<std::string> sizes;
    for (const std::int64_t size : shape) sizes.push_back(size < 0 ? "?" : std::to_string(size));
    options += " --input " + shell_argument(fmt::format("{}:{}", name, fmt::join(sizes, "x")));
  }
  return options;
}

std::string verify_command(const ModelFiles& reference, const std::filesystem::path& candidate,
                           const std::vector<std::string>& data, const Shapes& shapes, std::optional<double> snr_db) {
  std::string command = "graft verify " + shell_path(reference.model);
  if (!reference.weights.empty()) command += " " + shell_path(reference.weights);
  command += " " + shell_path(candidate);
  for (const std::string& output : reference.outputs) command += " --keep-output " + shell_argument(output);
  for (const std::string& source : data) command += " --data " + shell_argument(source);
  command += shape_options(shapes);
  if (snr_db) command += fmt::format(" --snr {:g}", *snr_db);
  return command + library_options();
}

std::string verify_command(const report::ConvertReport& report, const std::filesystem::path& candidate) {
  return verify_command({.model = report.file, .weights = report.import.weights, .outputs = report.import.outputs},
                        candidate);
}

}  // namespace graft::toolkit
