// graft new: writes a project for operators outside of Graft, or adds an operator to such a project.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/interrupts.hpp"
#include "cli/program.hpp"
#include "core/shell_quoted.hpp"
#include "graft/toolkit/new_project.hpp"
#include "present/json/fields.hpp"

namespace graft::cli {
namespace {

/// Returns the shell commands that lead from the project to an engine. Their files are named after the operator, so
/// that the files of other operators are not overwritten. If `model` is set, the commands use this model; otherwise
/// they generate a network with the operator.
std::vector<std::string> commands_for(const toolkit::NewReport& project, const std::filesystem::path& model) {
  const std::string path = shell_path(project.folder);
  const std::optional<std::string>& prefix = project.package_folder;
  const std::string& name = project.operator_folder;
  const std::string graft = shell_path(project.program);
  const std::string library = fmt::format("--operators {}/build/lib{}.so", path, project.name);
  std::vector<std::string> commands;
  if (!project.is_configured) {
    commands.push_back(fmt::format("cmake -S {0} -B {0}/build{1}", path,
                                   prefix ? " -DCMAKE_PREFIX_PATH=" + shell_argument(*prefix) : ""));
  }
  commands.push_back(fmt::format("cmake --build {}/build --parallel \"$(nproc)\"", path));
  commands.push_back(fmt::format("ctest --test-dir {}/build --output-on-failure", path));
  if (!model.empty()) {
    std::filesystem::path converted = model.filename();
    converted.replace_extension(".graft.onnx");
    commands.push_back(fmt::format("{} convert {} -o {} {}", graft, shell_path(model), shell_path(converted), library));
    commands.push_back(
        fmt::format("{} verify {} {} {} --kernels own", graft, shell_path(model), shell_path(converted), library));
    return commands;
  }
  commands.push_back(fmt::format("{0} {1}/{2}/{2}_network.py {2}.onnx", shell_path(project.python), path, name));
  commands.push_back(fmt::format("{0} convert {1}.onnx -o {1}.graft.onnx {2}", graft, name, library));
  commands.push_back(fmt::format("{0} verify {1}.onnx {1}.graft.onnx {2} --kernels own", graft, name, library));
  commands.push_back(fmt::format("{0} build {1}.graft.onnx -o {1}.engine {2}", graft, name, library));
  return commands;
}

Exit write_new(const Console& console, const toolkit::NewProject& request) {
  const DeferInterrupts defer;
  toolkit::NewReport written = toolkit::write_project(request);
  written.next = commands_for(written, request.model);
  const std::string what =
      written.was_there
          ? fmt::format("added to {}: the operator {}, in {} files and a line of {}.inc", written.folder.string(),
                        written.operator_name, written.files.size() - 1, written.name)
          : fmt::format("wrote {}: {} files, with the operator {}", written.folder.string(), written.files.size(),
                        written.operator_name);
  const std::string kernels = request.model.empty()
                                  ? ""
                                  : fmt::format("\n\nWrite the computation in {}: until then the tests fail there",
                                                fmt::join(written.to_write, " and "));
  console.say(fmt::format("{}{}\n\nNext\n  {}", what, kernels, fmt::join(written.next, "\n  ")));
  if (!written.has_package && !written.is_configured) {
    console.warn(
        "the project needs Graft's headers and its CMake package, which are not installed with this program, because "
        "it is in a build folder\nInstall them from Graft's checkout with `make install PREFIX=DIR`, and add "
        "-DCMAKE_PREFIX_PATH=DIR to the first command");
  }
  console.result(present::json_of_report(written));
  return Exit::done;
}

}  // namespace

void add_new(Program& program) {
  const auto request = std::make_shared<toolkit::NewProject>();
  Command* command = program.add_command("new",
                                         "creates a project with an operator of your own, or adds an operator to a "
                                         "project: kernels, a fusion, cases and tests, ready to build",
                                         "graft new my_ops --like reduction --operator RowNorm",
                                         [request](const Console& c) { return write_new(c, *request); });
  command
      ->add_option("FOLDER", request->folder,
                   "folder to create; its name becomes the name of the project and its library. If the project exists, "
                   "the operator of --operator is added to it")
      ->required();
  command
      ->add_option("--like", request->kind,
                   fmt::format("template of the operator, to be changed by you: {} (default: elementwise)",
                               fmt::join(toolkit::project_kinds(), ", ")))
      ->type_name("KIND")
      ->check(one_of(toolkit::project_kinds()));
  command
      ->add_option("--from", request->model,
                   "model with a node of an operator that neither TensorRT nor Graft has, for --node")
      ->type_name("MODEL");
  command
      ->add_option("--node", request->node,
                   "with --from: node whose operator is written instead of a template, with its inputs, outputs and "
                   "attributes; the kernels are yours to write")
      ->type_name("NAME");
  command
      ->add_option("--operator", request->operator_name,
                   fmt::format("name of the operator (default, by template: {})",
                               fmt::join(toolkit::template_operator_names(), ", ")))
      ->type_name("NAME");
}

}  // namespace graft::cli
