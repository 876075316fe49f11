// The class Model, and the functions that read models.
#include "graft/toolkit/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/import.hpp"
#include "import/messages.hpp"
#include "import/read_model.hpp"
#include "onnx/node_cost.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_name.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/text.hpp"
#include "toolkit/access.hpp"
#include "toolkit/ports.hpp"
#include "toolkit/read.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/ends.hpp"

namespace graft::toolkit {
namespace {

Port port_of(const onnx::Value& value) {
  Port port{.name = value.name, .type = value.type ? to_string(*value.type) : "?", .shape = std::nullopt};
  if (!value.shape) return port;
  port.shape.emplace();
  for (const Dim& dim : *value.shape) port.shape->push_back(dim.is_constant() ? dim.value() : -1);
  return port;
}

report::ModelValue model_value_of(const onnx::Value* value) {
  if (value == nullptr) return {};
  return {.name = value->name, .type = onnx::type_text(*value), .is_initializer = value->initializer.has_value()};
}

template <class Values>
std::vector<report::ModelValue> model_values_of(const Values& values) {
  std::vector<report::ModelValue> result;
  for (const onnx::Value* value : values) result.push_back(model_value_of(value));
  return result;
}

/// Returns the names of the values that the bodies of a node (such as the branches of an If) read from the graph that
/// contains the node.
std::vector<std::string> captures_of(const onnx::Node& node) {
  std::set<std::string> names;
  const auto add = [&](const std::vector<onnx::Value*>& read) {
    for (const onnx::Value* value : read) {
      if (value != nullptr && node.graph->find_local(value->name) == value) names.insert(value->name);
    }
  };
  for (const onnx::Graph* body : node.subgraphs()) {
    body->for_each_node([&](const onnx::Node& inner) { add(inner.inputs); });
    add(body->outputs());
  }
  return {names.begin(), names.end()};
}

report::ModelGraph graph_of(const onnx::Graph& graph);

report::ModelNode node_of(const onnx::Node& node) {
  report::ModelNode result{.ref = onnx::ref_of(node),
                           .op = onnx::qualified_operator_name(node),
                           .inputs = model_values_of(node.inputs),
                           .outputs = model_values_of(node.outputs),
                           .attributes = {},
                           .bodies = {},
                           .captures = captures_of(node),
                           .cost = onnx::cost_of(node)};
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.kind() == "graph" || attribute.kind() == "graphs") continue;
    result.attributes.emplace_back(name, to_text(attribute));
  }
  for (const onnx::Graph* body : node.subgraphs()) result.bodies.push_back(graph_of(*body));
  return result;
}

report::ModelGraph graph_of(const onnx::Graph& graph) {
  report::ModelGraph result{
      .inputs = model_values_of(graph.inputs()), .outputs = model_values_of(graph.outputs()), .nodes = {}};
  for (const onnx::Node* node : graph.nodes()) result.nodes.push_back(node_of(*node));
  return result;
}

/// Returns the inputs that the file declares, as text, or an empty string where it cannot be read without shapes.
std::string inputs_without_shapes(const std::filesystem::path& file, const ImportOptions& options) {
  try {
    return inputs_text(
        read_model(file, options.weights, {.outputs = options.outputs, .input_shapes = {}, .origin = nullptr}).graph());
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<Port> ports_of(const std::vector<const onnx::Value*>& values) {
  std::vector<Port> ports;
  for (const onnx::Value* value : values) ports.push_back(port_of(*value));
  return ports;
}

std::vector<report::ModelPort> model_ports(const std::vector<onnx::Value*>& values) {
  std::vector<report::ModelPort> ports;
  for (const onnx::Value* value : values) {
    report::ModelPort port{.name = value->name, .type = value->type ? to_string(*value->type) : "?", .shape = {}};
    if (value->shape) port.shape.emplace();
    for (const Dim& dim : value->shape.value_or(Shape())) {
      if (dim.is_constant()) {
        port.shape->emplace_back(dim.value());
      } else {
        port.shape->emplace_back(onnx::size_text(dim));
      }
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

Model::Model() : state_(std::make_shared<const State>()) {}
Model::~Model() = default;
Model::Model(const Model&) = default;
// A move copies the shared state, so that the source stays a valid model.
Model::Model(Model&& other) noexcept : state_(other.state_) {}  // NOLINT(performance-move-constructor-init)
Model& Model::operator=(const Model&) = default;
Model& Model::operator=(Model&& other) noexcept {
  state_ = other.state_;
  return *this;
}

std::vector<Port> Model::inputs() const { return ports_of(verify::fed_inputs(state_->model)); }
std::vector<Port> Model::outputs() const { return ports_of(verify::all_outputs(state_->model)); }
std::size_t Model::node_count() const { return state_->model.graph().node_count(); }
report::ModelGraph Model::graph() const { return graph_of(state_->model.graph()); }

std::vector<report::ModelFunction> Model::functions() const {
  std::vector<report::ModelFunction> functions;
  for (const auto& [key, function] : state_->model.functions) {
    functions.push_back({.domain = key.domain, .name = key.name, .body = graph_of(std::as_const(*function.body))});
  }
  return functions;
}

Model Model::with_inferred_shapes() const {
  graft::onnx::Model model = state_->model.clone();
  infer_shapes(model);
  return ModelAccess::make(std::move(model), state_->frozen, state_->origin);
}

const std::string& Model::source() const { return state_->model.source; }
void Model::save(const std::filesystem::path& file) const { onnx::write_onnx(state_->model, file); }
std::string Model::serialize() const { return onnx::serialize_onnx(state_->model); }

InputShapes to_internal(const Shapes& shapes) {
  InputShapes internal;
  for (const auto& [name, sizes] : shapes) {
    Shape shape;
    for (const std::int64_t size : sizes) shape.push_back(size < 0 ? onnx::unknown_dim() : Dim(size));
    internal.emplace(name, std::move(shape));
  }
  return internal;
}

graft::onnx::Model read(const std::filesystem::path& file, const ImportOptions& options, const InputShapes& shapes,
                        report::Origin* origin, std::function<void(std::size_t done, std::size_t total)> progress) {
  try {
    return read_model(
        file, options.weights,
        {.outputs = options.outputs, .input_shapes = shapes, .origin = origin, .progress = std::move(progress)});
  } catch (const Error& error) {
    if (options.shapes.empty() || error.kind() != Error::Kind::bad_input) throw;
    const std::string said = inputs_without_shapes(file, options);
    if (said.empty() || std::string_view(error.what()).find(said) != std::string_view::npos) throw;
    throw Error(fmt::format("{}\nWithout {} {}", error.what(), setting_name(Setting::input_shapes), said));
  }
}

std::vector<passes::FrozenSize> frozen_sizes_of(const graft::onnx::Model& model, const std::filesystem::path& file,
                                                const ImportOptions& options) {
  return passes::find_frozen_sizes(model, to_internal(options.shapes), [&] {
    return read_model(file, options.weights, {.outputs = options.outputs, .input_shapes = {}, .origin = nullptr});
  });
}

Model load(const std::filesystem::path& file, const ImportOptions& options) {
  Work work(options.watch);
  return work.run([&] {
    const std::string what = "reading " + file.string();
    work.report(0, what);
    const InputShapes shapes = to_internal(options.shapes);
    report::Origin origin;
    graft::onnx::Model model = read(file, options, shapes, &origin,
                                    [&](std::size_t done, std::size_t total) { work.report_step(what, done, total); });
    if (shapes.empty()) return ModelAccess::make(std::move(model), {}, std::move(origin));
    work.report(0.5, "inferring shapes");
    infer_shapes(model, shapes);
    auto frozen = frozen_sizes_of(model, file, options);
    return ModelAccess::make(std::move(model), std::move(frozen), std::move(origin));
  });
}

Format format_of(const std::filesystem::path& file) {
  switch (graft::format_of(file)) {
    case FileFormat::tensorflow: return Format::tensorflow;
    case FileFormat::caffe: return Format::caffe;
    case FileFormat::onnx: break;
  }
  return Format::onnx;
}

Model parse(std::string_view onnx, const std::string& name, const Shapes& shapes) {
  graft::onnx::Model model = graft::onnx::parse_onnx(onnx, {}, name);
  if (!shapes.empty()) infer_shapes(model, to_internal(shapes));
  return ModelAccess::make(std::move(model));
}

}  // namespace graft::toolkit
