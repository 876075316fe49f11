// Sizes are numbers, or strings for dynamic dimensions.
#include "present/json/model_json.hpp"

#include "present/text/model_text.hpp"

namespace graft::present {

Json json_of_io(const onnx::Model& model) {
  const auto listed = [](const auto& values) {
    Json list = Json::array();
    for (const onnx::Value* value : values) {
      Json shape;
      if (value->shape) {
        shape = Json::array();
        for (const Dim& dim : *value->shape) {
          shape.push_back(dim.is_constant() ? Json(dim.value()) : Json(size_text(dim)));
        }
      }
      list.push_back({{"name", value->name}, {"type", value->type ? to_string(*value->type) : "?"}, {"shape", shape}});
    }
    return list;
  };
  return {{"inputs", listed(model.graph().inputs())}, {"outputs", listed(model.graph().outputs())}};
}

Json to_json(const Origin& origin) {
  if (origin.format.empty()) return {{"origin", nullptr}, {"notes", origin.notes}};
  Json left_out = Json::array();
  for (const Origin::LeftOut& entry : origin.left_out) {
    left_out.push_back({{"operator", entry.op}, {"count", entry.count}, {"why", entry.why}});
  }
  return {{"origin",
           {{"format", origin.format},
            {"nodes", origin.nodes},
            {"operators", origin.operators},
            {"left_out", left_out},
            {"tensors_renamed", origin.renamed}}},
          {"notes", origin.notes}};
}

}  // namespace graft::present
