// Writes a cut as JSON.
#include "toolkit/cut_json.hpp"

#include <string>

#include "import/cut_network.hpp"

namespace graft::toolkit {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) {
    list.push_back({{"name", port.name}, {"type", port.type}, {"shape", port.shape ? Json(*port.shape) : Json()}});
  }
  return list;
}

Json json_of(const Model& model, const std::filesystem::path& file, std::size_t nodes) {
  return {{"file", file.filename().string()},
          {"nodes", nodes},
          {"inputs", json_of(model.inputs())},
          {"outputs", json_of(model.outputs())}};
}

template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const DetectionTail& tail) {
  const bool is_suppression = tail.kind == DetectionTail::Kind::suppression;
  return {{"kind", to_string(tail.kind)},
          {"node", tail.node.name},
          {"boxes", tail.boxes},
          {"scores", tail.scores},
          {"form", !is_suppression                                      ? Json()
                   : tail.form == DetectionTail::Boxes::center_and_size ? Json("center_and_size")
                                                                        : Json("corners")},
          {"most", json_of(tail.most)},
          {"overlap", json_of(tail.overlap)},
          {"lowest_score", json_of(tail.lowest_score)}};
}

}  // namespace

nlohmann::ordered_json json_of_cut(const CutResult& result, const CutFiles& files) {
  const CutNetwork& network = result.network;
  Json causes = Json::array();
  for (const NodeSupport& cause : result.causes) {
    causes.push_back({{"node", cause.node.name},
                      {"operator", cause.node.op},
                      {"verdict", to_string(cause.support)},
                      {"reason", cause.reason}});
  }
  Json tails = Json::array();
  for (const DetectionTail& tail : result.tails) tails.push_back(json_of(tail));
  return {{"schema", cut_schema},
          {"first", network.tensorrt_is_first ? "tensorrt" : "host"},
          {"tensorrt", json_of(network.tensorrt, files.tensorrt, result.nodes_in_tensorrt)},
          {"host", json_of(network.host, files.host, result.nodes_on_host)},
          {"between", json_of(result.between)},
          {"outputs", network.outputs},
          {"share_in_tensorrt", result.share_in_tensorrt},
          {"causes", causes},
          {"tails", tails}};
}

}  // namespace graft::toolkit
