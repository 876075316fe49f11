// `graft new`: checks the names, inserts them into the templates, and moves the finished folder into place.
#include "graft/toolkit/new_project.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/atomic_file.hpp"
#include "core/executable_folder.hpp"
#include "core/shell_quoted.hpp"
#include "engine/driver.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/model.hpp"
#include "inspect/forecast.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/staged_folder.hpp"
#include "toolkit/access.hpp"
#include "toolkit/operator_from_node.hpp"
#include "toolkit/template_files.hpp"

namespace graft::toolkit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view common = "common";
constexpr std::size_t longest_name = 64;
constexpr std::array build_files = {"build.ninja", "Makefile"};

/// The project name in the templates. It is replaced by the name of the new project.
constexpr std::string_view template_project = "my_ops";
struct TemplateOperator {
  std::string_view kind;
  std::string_view name;
  std::string_view folder;
};
constexpr std::array template_operators = {
    TemplateOperator{"elementwise", "BetaSwish", "beta_swish"},
    TemplateOperator{"reduction", "RmsNorm", "rms_norm"},
    TemplateOperator{"two_inputs", "GatedTanh", "gated_tanh"},
    TemplateOperator{"data_sizes", "SelectRows", "select_rows"},
};
/// The template operator whose names occur in the files of templates/operators/common, which projects of all kinds
/// share.
constexpr const TemplateOperator& common_operator = template_operators[0];

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <std::size_t size>
bool is_one_of(std::string_view name, const std::array<std::string_view, size>& all) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

/// Throws Error for a name that cannot be a CMake target, a library and a namespace.
void check_project_name(const std::string& name) {
  const auto refuse = [&](std::string_view why) {
    throw Error(
        fmt::format("graft new: the name '{}' {}\nUse lower-case letters, digits and single `_`, beginning with a "
                    "letter, as in my_ops",
                    name, why));
  };
  const bool is_written_well =
      !name.empty() && is_lower(name.front()) && name.back() != '_' && name.find("__") == std::string::npos &&
      std::all_of(name.begin(), name.end(), [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
  if (!is_written_well) refuse("is not a name that C++, CMake and the file system all accept");
  if (name.size() > longest_name)
    refuse(fmt::format("has {} characters; it must have at most {}", name.size(), longest_name));
  constexpr std::array<std::string_view, 9> of_cpp = {"and_eq", "co_await", "co_return",    "co_yield",     "not_eq",
                                                      "or_eq",  "xor_eq",   "thread_local", "static_assert"};
  if (is_one_of(name, of_cpp) || name.ends_with("_cast") || name.ends_with("_t")) {
    refuse("may be a keyword or a type of C++");
  }
  constexpr std::array<std::string_view, 12> of_cmake = {
      "all",     "help",   "clean",      "test",       "tests",         "install",
      "package", "depend", "preinstall", "edit_cache", "rebuild_cache", "list_install_components"};
  if (is_one_of(name, of_cmake)) refuse("is the name of a target of CMake");
  constexpr std::array<std::string_view, 6> of_graft = {"graft",           "graft_c",    "graft_plugins",
                                                        "graft_stand_ins", "graft_onnx", "graft_onnx_names"};
  if (is_one_of(name, of_graft)) refuse("is the name of a library of Graft");
}

void check_operator_name(const std::string& name) {
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format(
        "graft new: {} {}: {}\nUse letters and digits, beginning with an upper-case letter, as in BetaSwish",
        setting_name(Setting::project_operator), name, why));
  };
  const bool is_written_well = is_upper(name.front()) && std::all_of(name.begin(), name.end(), [](char c) {
                                 return is_lower(c) || is_upper(c) || is_digit(c);
                               });
  if (!is_written_well) refuse("C++ does not accept this name for a type");
  if (name.size() > longest_name)
    refuse(fmt::format("the name has {} characters; it must have at most {}", name.size(), longest_name));
  if (const std::string taken = owner_of_name(name); !taken.empty()) refuse(taken);
}

struct Replacement {
  std::string_view from;
  std::string_view to;
};

/// Returns `text` with all occurrences of each Replacement::from replaced by its `to`. Inserted text is not searched
/// again.
std::string replaced(std::string_view text, std::span<const Replacement> replacements) {
  std::string result;
  while (!text.empty()) {
    const auto found = std::find_if(replacements.begin(), replacements.end(),
                                    [&](const Replacement& each) { return text.starts_with(each.from); });
    if (found == replacements.end()) {
      result += text.front();
      text.remove_prefix(1);
    } else {
      result += found->to;
      text.remove_prefix(found->from.size());
    }
  }
  return result;
}

/// Returns the C++ namespace of a project. A name that is a single word gets the suffix `_ops`, because it may be a
/// function of the C library, which conflicts with a namespace of the same name.
std::string namespace_of(const std::string& project) {
  return project.find('_') == std::string::npos ? project + "_ops" : project;
}

bool is_cpp(const fs::path& file) {
  constexpr std::array<std::string_view, 4> extensions = {".hpp", ".cpp", ".cu", ".inc"};
  return is_one_of(file.extension().string(), extensions);
}

/// The names of a new project and its operator, which replace the names in the templates.
struct Names {
  std::string project;
  std::string operator_name;
  std::string operator_folder;
};

/// The source from which a new operator is written: a template (`kind`), or a node of a model whose types and shapes
/// are inferred.
struct Source {
  const TemplateOperator* kind = nullptr;
  onnx::Model model = {};
  const onnx::Node* node = nullptr;
};

/// Returns the node that the project names. Throws Error for an operator that ONNX or Graft has.
Source source_from_node(const NewProject& project) {
  Source source{.model = inspect::inferred_copy(model_of(load(project.model)))};
  source.node = &find_named_node(source.model, project.node);
  const std::string& name = source.node->op_type;
  if (const std::string taken = owner_of_name(name); !taken.empty()) {
    throw Error(fmt::format("{}: {}\n`graft inspect {}` reports how TensorRT runs the node", describe(*source.node),
                            taken, shell_path(project.model)));
  }
  if (!project.operator_name.empty() && project.operator_name != name) {
    throw Error(
        fmt::format("graft new: {} {}: the operator of {} is {}, and only an operator of that name replaces the "
                    "node\nLeave out {}",
                    setting_name(Setting::project_operator), project.operator_name, describe(*source.node), name,
                    setting_name(Setting::project_operator)));
  }
  return source;
}

/// Returns the template of the project. Throws Error for an unknown kind.
Source source_from_template(const NewProject& project) {
  const auto* const kind = std::find_if(template_operators.begin(), template_operators.end(),
                                        [&](const TemplateOperator& each) { return each.kind == project.kind; });
  if (kind == template_operators.end()) {
    throw Error(fmt::format("graft new: {} {}: there is no such template; the templates are {}",
                            setting_name(Setting::project_kind), project.kind, fmt::join(project_kinds(), ", ")));
  }
  return {.kind = kind};
}

/// Writes each template file whose path begins with `prefix` to the folder, under its path without the prefix. In the
/// text and the path, the names of the template operator `written_with` are replaced by `names`. Returns the written
/// paths, relative to the folder.
std::vector<std::string> write_templates(const fs::path& folder, const std::string& prefix,
                                         const TemplateOperator& written_with, const Names& names) {
  const auto with_names = [&](std::string_view text, std::string_view project_name) {
    const std::array replacements = {Replacement{template_project, project_name},
                                     Replacement{written_with.name, names.operator_name},
                                     Replacement{written_with.folder, names.operator_folder}};
    return replaced(text, replacements);
  };
  std::vector<std::string> written;
  for (const TemplateFile& file : template_files()) {
    if (!file.path.starts_with(prefix)) continue;
    const std::string path = with_names(file.path.substr(prefix.size()), names.project);
    fs::create_directories((folder / path).parent_path());
    write_file(folder / path, with_names(file.text, is_cpp(path) ? namespace_of(names.project) : names.project));
    written.push_back(path);
  }
  return written;
}

/// The sections of the README of a project whose operator is written from a node.
constexpr std::string_view sections_for_node = "node/README.md";

/// Adapts the README of a project for an operator that is written from a node. Removes the lines about a pattern and a
/// network, because such an operator has no files for them. Changes the commands for that network to commands for the
/// model of the node.
void adapt_readme(const fs::path& file, const NewProject& project, const Names& names) {
  std::ifstream read(file);
  std::string text;
  for (std::string line; std::getline(read, line) && line != "## Use it";) {
    const bool is_missing =
        line.find("_fusion.yaml`") != std::string::npos || line.find("_network.py`") != std::string::npos;
    if (!is_missing) text += line + '\n';
  }
  read.close();
  const fs::path model = project.model.filename();
  const std::string given = shell_path(project.model);
  const std::string converted = shell_path(fs::path(model).replace_extension(".graft.onnx"));
  const std::string engine = shell_path(fs::path(model).replace_extension(".engine"));
  const std::array replacements = {Replacement{"model.graft.onnx", converted}, Replacement{"model.onnx", given},
                                   Replacement{"model.engine", engine}, Replacement{template_project, names.project},
                                   Replacement{common_operator.folder, names.operator_folder}};
  for (const TemplateFile& each : template_files()) {
    if (each.path == sections_for_node) text += replaced(each.text, replacements);
  }
  write_file(file, text);
}

/// Returns the list of operators of a project: the only file NAME.inc after OPERATORS in its CMakeLists.txt. Returns
/// nothing if the folder is not a project of `graft new`. The folder need not have the project's name, for example in a
/// clone.
std::optional<fs::path> list_of(const fs::path& folder) {
  std::ifstream file(folder / "CMakeLists.txt");
  std::stringstream lines;
  if (!(lines << file.rdbuf())) return {};
  std::error_code failed;
  std::optional<fs::path> list;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    const fs::path& path = entry->path();
    const std::string use = fmt::format("OPERATORS {}", path.filename().string());
    if (path.extension() != ".inc" || lines.str().find(use) == std::string::npos) continue;
    if (list) return {};
    list = path;
  }
  return list;
}

/// Replaces each character of a comment except line ends by a space, so that the line numbers stay the same.
std::string without_comments(std::string text) {
  for (std::size_t begin = 0; (begin = text.find('/', begin)) != std::string::npos; ++begin) {
    const std::string_view mark = std::string_view(text).substr(begin, 2);
    if (mark != "//" && mark != "/*") continue;
    const std::size_t end = mark == "//" ? text.find('\n', begin) : text.find("*/", begin + 2);
    const std::size_t after = end == std::string::npos ? text.size() : mark == "//" ? end : end + 2;
    for (; begin < after; ++begin) {
      if (text[begin] != '\n') text[begin] = ' ';
    }
    --begin;
  }
  return text;
}

/// Returns the number of the first line that lists the operator, or another operator with the same folder; nothing if
/// no line does.
std::optional<int> line_of(const std::string& text, const Names& names) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(std::remove_if(line.begin(), line.end(), [](unsigned char c) { return std::isspace(c) != 0; }),
               line.end());
    if (line.find(fmt::format("GRAFT_OPERATOR({},", names.operator_folder)) != std::string::npos ||
        line.find(fmt::format("::{})", names.operator_name)) != std::string::npos) {
      return number;
    }
  }
  return std::nullopt;
}

/// Returns the text of the list with a line for the operator. Throws Error where the list has this line already, or has
/// it as a comment while the operator's folder exists.
std::string list_with(const fs::path& list, const Names& names) {
  std::ifstream file(list);
  std::stringstream lines;
  if (!(lines << file.rdbuf())) throw Error(fmt::format("{}: the file cannot be read", list.string()));
  std::string text = lines.str();
  if (const std::optional<int> line = line_of(without_comments(text), names)) {
    throw Error(fmt::format("{}:{}: the operator {} is listed already, and nothing was changed\nChoose another name",
                            list.string(), *line, names.operator_name));
  }
  std::error_code ignored;
  const bool has_folder = fs::exists(list.parent_path() / names.operator_folder, ignored);
  if (const std::optional<int> line = line_of(text, names); line && has_folder) {
    throw Error(
        fmt::format("{}:{}: the operator {} exists but is left out, because its line is a comment; nothing was "
                    "changed\nUncomment the line, or choose another name",
                    list.string(), *line, names.operator_name));
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += fmt::format("GRAFT_OPERATOR({}, {}::{})\n", names.operator_folder, namespace_of(names.project),
                      names.operator_name);
  return text;
}

/// Writes the files of an operator to its folder. Returns their paths relative to the project.
std::vector<std::string> write_operator(const fs::path& folder, const Source& source, const Names& names) {
  std::vector<std::string> files;
  if (source.node == nullptr) {
    files = write_templates(folder, fmt::format("{}/{}/", source.kind->kind, source.kind->folder), *source.kind, names);
  } else {
    fs::create_directories(folder);
    const OperatorNames own{namespace_of(names.project), names.operator_name, names.operator_folder};
    for (const OperatorSource& each : operator_sources(*source.node, own)) {
      files.push_back(names.operator_folder + each.suffix);
      write_file(folder / files.back(), each.text);
    }
  }
  for (std::string& file : files) file = fmt::format("{}/{}", names.operator_folder, file);
  return files;
}

/// Writes the operator's folder and adds its line to the list, or does neither. Returns the written files.
std::vector<std::string> add_operator(const fs::path& folder, const fs::path& list, const Source& source,
                                      const Names& names) {
  const fs::path target = folder / names.operator_folder;
  AtomicFile longer(list);
  longer.write(list_with(list, names));
  longer.flush();
  onnx::StagedFolder staged(target);
  std::vector<std::string> files = write_operator(staged.path(), source, names);
  files.push_back(list.filename().string());
  staged.commit();
  try {
    longer.commit();
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove_all(target, ignored);
    throw;
  }
  return files;
}

/// Returns whether a shell runs this program by its name. The folders are compared too, because several Python
/// environments have links to one interpreter.
bool is_on_path(const fs::path& program) {
  const std::optional<fs::path> found = engine::find_on_path(program.filename().string());
  std::error_code ignored;
  return found && fs::equivalent(*found, program, ignored) &&
         (found->parent_path() == program.parent_path() ||
          fs::equivalent(found->parent_path(), program.parent_path(), ignored));
}

/// Returns the folder of the program `graft`: the folder of the running program or, in another program that uses
/// libgraft.so, the folder `bin` next to the folder of libgraft.so.
fs::path program_folder() {
  const fs::path own = executable_folder();
  std::error_code ignored;
  return fs::is_regular_file(own / "graft", ignored) ? own : own.parent_path() / "bin";
}

/// Returns the name by which a shell starts this program. The program of a wheel is started by a script in the folder
/// `bin` of the Python environment.
std::string program_name() {
  fs::path program = program_folder() / "graft";
  const std::optional<fs::path> environment = engine::environment_of_wheel();
  std::error_code ignored;
  if (environment && fs::is_regular_file(*environment / "bin" / "graft", ignored)) {
    program = *environment / "bin" / "graft";
  }
  const std::optional<fs::path> found = engine::find_on_path("graft");
  return found && fs::equivalent(*found, program, ignored) ? "graft" : program.string();
}

/// Returns the command for the Python that has NumPy and onnx. This is the interpreter in the environment variable
/// GRAFT_PYTHON, which is set in a wheel, or "python3" if it is not set or if `python3` starts the same interpreter.
std::string python_name() {
  const char* chosen = std::getenv("GRAFT_PYTHON");  // NOLINT(concurrency-mt-unsafe): the program has one thread here
  if (chosen == nullptr || *chosen == '\0') return "python3";
  const fs::path python = fs::path(chosen).parent_path() / "python3";
  std::error_code ignored;
  return fs::equivalent(python, chosen, ignored) && is_on_path(python) ? "python3" : chosen;
}

/// Sets NewReport::has_package to whether Graft's CMake package is installed next to this program. Sets package_folder
/// to its folder if CMake does not find the package by itself, through PATH or through the `python3` of a wheel.
void find_package(NewReport& written) {
  const fs::path programs = program_folder();
  std::error_code ignored;
  for (const char* const lib : library_folders) {
    if (!fs::is_regular_file(programs.parent_path() / lib / "cmake" / "graft" / "graftConfig.cmake", ignored)) continue;
    written.has_package = true;
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): the program has one thread here
    const std::string searched = fmt::format(":{}:", path == nullptr ? "" : path);
    const std::optional<fs::path> environment = engine::environment_of_wheel();
    const bool is_found = environment ? is_on_path(*environment / "bin" / "python3")
                                      : searched.find(fmt::format(":{}:", programs.string())) != std::string::npos;
    if (!is_found) written.package_folder = programs.parent_path().string();
    return;
  }
}

}  // namespace

std::vector<std::string> project_kinds() {
  std::vector<std::string> kinds;
  for (const TemplateOperator& each : template_operators) kinds.emplace_back(each.kind);
  return kinds;
}

std::vector<std::string> template_operator_names() {
  std::vector<std::string> names;
  for (const TemplateOperator& each : template_operators) names.emplace_back(each.name);
  return names;
}

NewReport write_project(const NewProject& project) {
  fs::path folder = project.folder.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "my_ops/"
  const std::optional<fs::path> list = list_of(folder);
  NewReport written;
  written.folder = folder;
  written.name = list ? list->stem().string() : folder.filename().string();
  written.kind = project.kind;
  written.was_there = list.has_value();
  check_project_name(written.name);
  if (project.model.empty() != project.node.empty()) {
    throw Error(fmt::format("graft new: {} and {} belong together: a model, and the name of a node in it",
                            setting_name(Setting::project_model), setting_name(Setting::project_node)));
  }
  const bool is_from_node = !project.model.empty();
  const Source source = is_from_node ? source_from_node(project) : source_from_template(project);
  if (list && project.operator_name.empty() && !is_from_node) {
    throw Error(
        fmt::format("{}: this project already exists and was not changed\nChoose another folder, or set {} to the name "
                    "of an operator to add to this project",
                    folder.string(), setting_name(Setting::project_operator)));
  }
  if (is_from_node) {
    written.kind = "node";
    written.operator_name = definition_name(*source.node);
  } else {
    written.operator_name = project.operator_name.empty() ? std::string(source.kind->name) : project.operator_name;
    check_operator_name(written.operator_name);
  }
  written.operator_folder = operator_folder(written.operator_name);
  if (is_folder_of_project(written.operator_folder)) {
    throw Error(
        fmt::format("graft new: {} {}: its folder would be `{}`, which the project needs for other files\nChoose "
                    "another name for the operator",
                    setting_name(Setting::project_operator), written.operator_name, written.operator_folder));
  }

  const Names names{written.name, written.operator_name, written.operator_folder};
  if (list) {
    written.files = add_operator(folder, *list, source, names);
  } else {
    onnx::StagedFolder staged(folder);
    written.files = write_templates(staged.path(), fmt::format("{}/", common), common_operator, names);
    if (is_from_node) adapt_readme(staged.path() / "README.md", project, names);
    std::ranges::move(write_operator(staged.path() / names.operator_folder, source, names),
                      std::back_inserter(written.files));
    staged.commit();
  }
  std::sort(written.files.begin(), written.files.end());
  if (is_from_node) {
    const std::string stem = (folder / names.operator_folder / names.operator_folder).string();
    if (has_formula(*source.node)) {
      written.to_write = {stem + ".hpp"};
    } else {
      written.to_write = {stem + "_cpu.cpp", stem + "_cuda.cu"};
    }
  }
  find_package(written);
  written.program = program_name();
  written.python = python_name();
  // A failed configuration leaves CMakeCache.txt, but no build files.
  written.is_configured = std::any_of(build_files.begin(), build_files.end(), [&](const char* file) {
    std::error_code ignored;
    return fs::is_regular_file(folder / "build" / file, ignored);
  });
  return written;
}

}  // namespace graft::toolkit
