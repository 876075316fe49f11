// Writes the JSON schemas that follow from the fields of reports: graft_write_schemas docs/schema [--check].
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "all_reports.hpp"
#include "present/json/schema.hpp"

namespace {

namespace report = graft::report;
using graft::present::Json;
using graft::present::schema_of_report;
using graft::present::schema_of_value;

/// Returns the schema of the JSON about one operator, of lists of operators, and of what the readers support.
Json schema_of_ops() {
  Json schema = schema_of_report<report::OperatorFacts>();
  schema.erase("required");
  Json operators = schema_of_value(std::type_identity<std::vector<report::OperatorFacts>>());
  Json read = schema_of_value(std::type_identity<std::vector<report::TensorFlowOperator>>());
  schema["properties"]["operators"] = {{"anyOf", {std::move(operators), std::move(read)}}};
  schema["properties"]["layers"] = schema_of_value(std::type_identity<std::vector<report::CaffeLayer>>());
  return schema;
}

/// Returns the schema of `graft bench --json`, which is either a ModelTimes or an OperatorTimes. Both have the key
/// `device`.
Json schema_of_bench() {
  Json schema = schema_of_report<report::ModelTimes>();
  schema["properties"].update(graft::present::schema_of_fields<report::OperatorTimes>()["properties"]);
  schema["required"] = {"device"};
  return schema;
}

/// Returns the schema of the file that names both halves of a network.
Json schema_of_cut() {
  Json schema = schema_of_report<report::CutHalves>();
  schema["properties"]["schema"] = {{"const", report::cut_schema}};
  return schema;
}

/// Returns the schema of `graft convert --json`, to which --cut adds a key.
Json schema_of_convert() {
  Json schema = schema_of_report<report::ConvertReport>();
  Json& cut = schema["properties"]["cut"];
  cut["description"] = "With --cut: both halves of the network; null if nothing was cut.";
  cut.update(schema_of_value(std::type_identity<std::optional<report::CutReport>>()));
  return schema;
}

/// Returns the schemas by the names of their files: those of the commands and of other JSON.
std::map<std::string, Json> schemas() {
  std::map<std::string, Json> schemas;
  const auto add = [&](const std::string& name, Json schema) {
    schemas["graft." + name + ".schema.json"] = std::move(schema);
  };
#define GRAFT_COMMAND(name, Report) add(#name, schema_of_report<report::Report>());
#include "graft/report/commands.inc"
#undef GRAFT_COMMAND
  add("bench", schema_of_bench());
  add("convert", schema_of_convert());
  add("cut", schema_of_cut());
  add("error", schema_of_report<report::ErrorReport>());
  add("ops", schema_of_ops());
  add("verify.layers", schema_of_report<report::LayersReport>());
  return schemas;
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
