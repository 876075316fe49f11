// Reads the JSON file that docs/schema/graft.cut.schema.json describes.
#include "import/cut_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graft/error.hpp"
#include "graft/report/cut.hpp"
#include "graft/setting.hpp"
#include "onnx/join.hpp"
#include "onnx/onnx_io.hpp"

namespace graft {
namespace {

using Json = nlohmann::json;

Json parse(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(
        fmt::format("{}: the file cannot be opened; check that it exists and that you may read it", path.string()));
  Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || json.value("schema", Json()) != report::cut_schema) {
    throw Error(
        fmt::format("{}: this is not a network that {} wrote, because its field \"schema\" is not \"{}\"; pass the "
                    ".cut.json file of a cut network",
                    path.string(), setting_name(Setting::cut), report::cut_schema));
  }
  return json;
}

onnx::Model read_half(const std::filesystem::path& path, const Json& json, const std::string& half) {
  const auto found = json.find(half);
  const auto file = found == json.end() || !found->is_object() ? Json::const_iterator() : found->find("file");
  if (found == json.end() || !found->is_object() || file == found->end() || !file->is_string()) {
    throw Error(
        fmt::format("{0}: '{1}' does not name a file; it must be an object with the name of a model, as in \"{1}\": "
                    "{{\"file\": \"{1}.onnx\"}}",
                    path.string(), half));
  }
  const std::filesystem::path name = file->get<std::string>();
  if (name.empty() || name.has_parent_path()) {
    throw Error(
        fmt::format("{}: '{}' names the file '{}'; it must be the name, without a path, of a file in the folder of the "
                    ".cut.json file",
                    path.string(), half, name.string()));
  }
  return onnx::read_onnx(path.parent_path() / name);
}

bool has_output(const onnx::Model& model, const std::string& name) {
  const auto& outputs = model.graph().outputs();
  return std::any_of(outputs.begin(), outputs.end(), [&](const onnx::Value* value) { return value->name == name; });
}

}  // namespace

bool is_cut_network(const std::filesystem::path& path) { return path.filename().string().ends_with(".cut.json"); }

CutNetwork read_cut_network(const std::filesystem::path& path) {
  const Json json = parse(path);
  CutNetwork network{
      .tensorrt = read_half(path, json, "tensorrt"), .host = read_half(path, json, "host"), .outputs = {}};
  const Json first = json.value("first", Json());
  if (first != "tensorrt" && first != "host") {
    throw Error(fmt::format("{}: 'first' is {}; it must be \"tensorrt\" or \"host\"", path.string(), first.dump()));
  }
  network.tensorrt_is_first = first == "tensorrt";
  const Json outputs = json.value("outputs", Json());
  if (!outputs.is_array())
    throw Error(fmt::format("{}: 'outputs' must be a list of the names of the network's outputs", path.string()));
  for (const Json& output : outputs) {
    if (!output.is_string())
      throw Error(fmt::format("{}: 'outputs' contains {}; each entry must be the name of an output, as a string",
                              path.string(), output.dump()));
    const auto name = output.get<std::string>();
    if (!has_output(network.tensorrt, name) && !has_output(network.host, name)) {
      throw Error(
          fmt::format("{}: 'outputs' contains '{}', but neither half has an output of this name", path.string(), name));
    }
    network.outputs.push_back(name);
  }
  return network;
}

onnx::Model join(const CutNetwork& network) {
  onnx::Model whole = onnx::join(network.first(), network.second(), network.outputs);
  whole.source = network.tensorrt.source;
  return whole;
}

}  // namespace graft
