// Writes the JSON schemas that follow from the fields of reports: graft_write_schemas docs/schema [--check].
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "graft/report/bench.hpp"
#include "graft/report/build.hpp"
#include "graft/report/canary.hpp"
#include "graft/report/convert.hpp"
#include "graft/report/cut.hpp"
#include "graft/report/doctor.hpp"
#include "graft/report/inspect.hpp"
#include "graft/report/layers.hpp"
#include "graft/report/new.hpp"
#include "graft/report/ops.hpp"
#include "graft/report/plugins.hpp"
#include "graft/report/program.hpp"
#include "graft/report/quantize.hpp"
#include "graft/report/run.hpp"
#include "graft/report/verify.hpp"
#include "present/json/schema.hpp"

namespace {

using graft::present::Json;

/// Returns the schema of the JSON about one operator, of lists of operators, and of what the readers support.
Json schema_of_ops() {
  using graft::present::schema_of_value;
  namespace report = graft::report;
  Json schema = graft::present::schema_of_report<report::OperatorFacts>(
      "graft ops", 1, "An operator, or the key `operators` or `layers` alone, which list them.");
  schema.erase("required");
  Json operators = schema_of_value(std::type_identity<std::vector<report::OperatorFacts>>());
  Json read = schema_of_value(std::type_identity<std::vector<report::TensorFlowOperator>>());
  schema["properties"]["operators"] = {{"anyOf", {std::move(operators), std::move(read)}}};
  schema["properties"]["layers"] = schema_of_value(std::type_identity<std::vector<report::CaffeLayer>>());
  return schema;
}

/// Returns the schema of the JSON about a model or about operators, which have the device in common.
Json schema_of_bench() {
  Json schema = graft::present::schema_of_report<graft::report::ModelTimes>("graft bench", 1,
                                                                            "Timed operators, or a model's runs.");
  Json operators = graft::present::schema_of_fields<graft::report::OperatorTimes>();
  schema["properties"].update(operators["properties"]);
  schema["required"] = {"device"};
  return schema;
}

/// Returns the schema of the file that names both halves of a network.
Json schema_of_cut() {
  Json schema = graft::present::schema_of_report<graft::report::CutHalves>(
      "the file that names both halves of a network that graft convert --cut wrote", 1,
      "Tensors between the halves have the same name in both; a dynamic size is -1.");
  schema["properties"]["schema"] = {{"const", graft::report::cut_schema}};
  return schema;
}

/// Returns the schema of `graft convert --json`, to which --cut adds a key.
Json schema_of_convert() {
  Json schema = graft::present::schema_of_report<graft::report::ConvertReport>(
      "graft convert", 1,
      "What was read, rewritten and written. Nodes are described as \"node 'name' (operator)\". `undone` has the "
      "rewrites whose proof failed.");
  Json& cut = schema["properties"]["cut"];
  cut["description"] = "With --cut: both halves of the network; null if nothing was cut.";
  cut.update(graft::present::schema_of_value(std::type_identity<std::optional<graft::report::CutReport>>()));
  return schema;
}

/// Returns the schemas by the names of their files.
std::map<std::string, Json> schemas() {
  using graft::present::schema_of_command;
  using graft::present::schema_of_report;
  return {
      {"graft.bench.schema.json", schema_of_bench()},
      {"graft.build.schema.json",
       schema_of_report<graft::report::BuildReport>(
           "graft build", 1,
           "The engine that was written, the network that TensorRT made of the model, and the plugins in it.")},
      {"graft.canary.schema.json",
       schema_of_report<graft::report::CanaryReport>("graft canary", 1, "The folder that was written.")},
      {"graft.convert.schema.json", schema_of_convert()},
      {"graft.cut.schema.json", schema_of_cut()},
      {"graft.doctor.schema.json", schema_of_report<graft::report::DoctorReport>(
                                       "graft doctor", 1, "What was found on this machine, and what is missing.")},
      {"graft.completions.schema.json",
       schema_of_report<graft::report::CompletionsReport>("graft completions", 1, "The script that a shell reads.")},
      {"graft.error.schema.json",
       schema_of_report<graft::report::ErrorReport>("any command that fails with exit code 2, 3 or 4", 1,
                                                    "Printed instead of a result.")},
      {"graft.inspect.schema.json", schema_of_command<graft::report::InspectReport>(
                                        "graft.inspect", 2, "How each node will run in TensorRT, and why.")},
      {"graft.help.schema.json", schema_of_report<graft::report::HelpReport>("graft help", 1, "The text of the help.")},
      {"graft.new.schema.json",
       schema_of_report<graft::report::NewReport>(
           "graft new", 1,
           "The project that was written, or the operator that was added to one, and the commands that lead to an "
           "engine.")},
      {"graft.ops.schema.json", schema_of_ops()},
      {"graft.plugins.schema.json",
       schema_of_report<graft::report::PluginsReport>(
           "graft plugins", 1, "The plugin creators of libraries, and checks of their contract.")},
      {"graft.quantize.schema.json",
       schema_of_command<graft::report::QuantizeReport>(
           "graft.quantize", 1,
           "The type of each node and why, what was tried, and the quality of outputs against f32.")},
      {"graft.run.schema.json",
       schema_of_report<graft::report::RunReport>("graft run", 1, "The outputs that were written.")},
      {"graft.verify.schema.json",
       schema_of_command<graft::report::VerifyReport>(
           "graft.verify", 1, "Each output of the reference compared with that of the candidate.")},
      {"graft.verify.layers.schema.json",
       schema_of_command<graft::report::LayersReport>(
           "graft.verify.layers", 2, "Each tensor that both models have, and where they begin to differ.")}};
}

/// Returns whether the file has this text already.
bool has_text(const std::filesystem::path& file, const std::string& text) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {}) == text;
}

int write_schemas(const std::filesystem::path& folder, bool is_check) {
  bool is_up_to_date = true;
  for (const auto& [name, schema] : schemas()) {
    const std::string text = schema.dump(2) + "\n";
    if (has_text(folder / name, text)) continue;
    is_up_to_date = false;
    if (!is_check) std::ofstream(folder / name, std::ios::binary) << text;
    std::cout << (folder / name).string() << (is_check ? ": outdated; run make docs" : ": written") << '\n';
  }
  return is_check && !is_up_to_date ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count < 2) {
      std::cerr << "usage: graft_write_schemas FOLDER [--check]\n";
      return 2;
    }
    return write_schemas(arguments[1], count > 2 && std::string(arguments[2]) == "--check");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
