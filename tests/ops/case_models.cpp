// Writes small ONNX models of every operator from its cases, and their descriptions, for tests in Python.
//   case_models engines OUT_FOLDER    a few of each type row, as plugins and as functions, to build engines
//   case_models functions OUT_FOLDER  every small case that has a function, with its input and the reference's output
// Both write OUT_FOLDER/manifest.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_elements = 100'000;

/// Returns a few cases of ordinary size for each type row, with different attributes.
std::vector<const OperatorCase*> chosen_cases(const OperatorCases& all) {
  std::vector<const OperatorCase*> chosen;
  for (const TypeRow& row : all.type->type_rows) {
    const std::size_t enough = row.formats[0] == DType::f32 ? 3 : 1;
    std::set<const Operator*> taken;
    for (const bool of_images : {true, false}) {
      for (const OperatorCase& test : all.cases) {
        const Extents& x = test.inputs[0].extents;
        const std::int64_t elements = x.element_count();
        if (!test.refused.empty() || test.large || test.shift != 0) continue;
        if (elements == 0 || elements > most_elements || x.rank() < 1) continue;
        if (of_images && (x.rank() < 3 || x.rank() > 5)) continue;
        if (taken.size() == enough || matching_row(*all.type, test.inputs) != &row ||
            !taken.insert(test.op.get()).second)
          continue;
        chosen.push_back(&test);
      }
    }
  }
  return chosen;
}

onnx::TensorData to_tensor(const HostTensor& tensor) {
  onnx::TensorData data;
  data.type = onnx::to_element_type(tensor.desc.dtype);
  data.dims.assign(tensor.desc.extents.begin(), tensor.desc.extents.end());
  data.bytes = onnx::Bytes(std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()));
  return data;
}

/// Returns whether an axis is the batch or a spatial axis; the channels of a network are fixed.
bool may_be_dynamic(int axis, int rank) { return axis == 0 || (rank >= 3 && axis >= 2); }

/// Returns for each axis of the first output whether its size depends on data.
std::vector<bool> sizes_by_data(const OperatorCase& test) {
  std::vector<Shape> inputs;
  for (const TensorDesc& desc : test.inputs) inputs.emplace_back(desc.extents.begin(), desc.extents.end());
  std::vector<Shape> outputs;
  const Status status = test.op->infer_shapes(inputs, outputs);
  if (!status.ok()) throw std::runtime_error(status.message());
  std::vector<bool> by_data;
  for (const Dim& dim : outputs[0]) by_data.push_back(dim.kind() == Dim::Kind::data_size);
  return by_data;
}

struct Variation {
  bool is_dynamic = false;
  bool quantize = true;  ///< i8 or f8e4m3fn inside, f32 inputs and outputs.
};

/// Returns a network with one node of the operator, from x to y. The other inputs are constants, like weights.
onnx::Model network_of(const OperatorCase& test, const Variation& variation) {
  onnx::Model model;
  onnx::Graph& graph = model.graph();
  graph.name = "network";
  graph.opset_imports[""] = test.inputs[0].dtype == DType::f8e4m3fn ? 19 : 18;
  const auto shape_of = [&](const Extents& extents, const std::string& stem) {
    Shape shape;
    for (int axis = 0; axis < extents.rank(); ++axis) {
      const bool is_free = variation.is_dynamic && may_be_dynamic(axis, extents.rank());
      shape.push_back(is_free ? Dim::symbol(stem + std::to_string(axis)) : Dim(extents[axis]));
    }
    return shape;
  };
  const auto quantized = [&](DType dtype) { return is_quantized(dtype) && variation.quantize; };
  const auto describe_value = [&](onnx::Value& value, DType dtype, const Extents& extents, const std::string& stem) {
    value.type = onnx::to_element_type(quantized(dtype) ? DType::f32 : dtype);
    value.shape = shape_of(extents, stem);
  };
  const std::vector<TensorDesc> outputs = output_descs(*test.op, test.inputs);
  OperatorCase linear = test;  // files have no other layout
  for (TensorDesc& desc : linear.inputs) desc.layout = Layout::linear;
  const std::vector<HostTensor> constants = make_inputs(linear);
  const auto step_of = [&](const char* port) {
    return graph.add_constant(std::string(port) + "_step",
                              onnx::TensorData::scalar_of(onnx::ElementType::f32, scale_of(*test.op, port)));
  };

  std::vector<onnx::Value*> inputs{graph.add_input("x")};
  describe_value(*inputs[0], test.inputs[0].dtype, test.inputs[0].extents, "d");
  onnx::Value* zero = nullptr;
  if (quantized(test.inputs[0].dtype)) {
    zero = graph.add_constant("zero", onnx::TensorData::scalar_of(onnx::to_element_type(test.inputs[0].dtype), 0));
    onnx::Node* node = graph.add_node("QuantizeLinear", {inputs[0], step_of("x"), zero}, {"x_steps"});
    inputs[0] = node->output();
  }
  for (std::size_t i = 1; i < constants.size(); ++i) {
    inputs.push_back(graph.add_constant(test.op->type().input_name(i), to_tensor(constants[i])));
  }
  onnx::Node* node = add_operator_node(graph, *test.op, inputs, {quantized(outputs[0].dtype) ? "y_steps" : "y"});
  node->name = "the_node";
  onnx::Value* y = node->output();
  if (quantized(outputs[0].dtype)) y = graph.add_node("DequantizeLinear", {y, step_of("y"), zero}, {"y"})->output();
  describe_value(*y, outputs[0].dtype, outputs[0].extents, "e");
  const std::vector<bool> by_data = sizes_by_data(test);
  for (std::size_t axis = 0; axis < by_data.size(); ++axis) {
    if (by_data[axis]) (*y->shape)[axis] = Dim::symbol("count");
  }
  graph.add_output(*y);
  return model;
}

/// Returns "x=2x32x5x7..2x32x5x7..4x32x10x14"; an empty string where no size is dynamic.
std::string profile_of(const Extents& extents) {
  std::string smallest;
  std::string largest;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    const std::int64_t most = may_be_dynamic(axis, extents.rank()) ? 2 * extents[axis] : extents[axis];
    smallest += fmt::format("{}{}", axis == 0 ? "" : "x", extents[axis]);
    largest += fmt::format("{}{}", axis == 0 ? "" : "x", most);
  }
  return fmt::format("x={}..{}..{}", smallest, smallest, largest);
}

Json to_json(const AttributeValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

class Writer {
 public:
  explicit Writer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void write(const OperatorCases& all) {
    for (const OperatorCase* test : chosen_cases(all)) write(*test);
    write_creators(all);
  }
  void finish() const {
    std::ofstream(folder_ / "manifest.json") << Json{{"models", models_}, {"creators", creators_}}.dump(1) << '\n';
  }

 private:
  void write(const OperatorCase& test) {
    const OperatorType& type = test.op->type();
    const bool is_linear = test.inputs[0].layout == Layout::linear;
    if (!is_linear) {  // the build requests the layout for inputs and outputs
      onnx::Model model = network_of(test, {.is_dynamic = false, .quantize = false});
      detach_functions(model);
      add(model, test, "plugin", {.is_dynamic = false, .quantize = false}, type.name, std::to_string(type.version));
      return;
    }
    for (const bool is_dynamic : {false, true}) {
      const Variation variation{.is_dynamic = is_dynamic, .quantize = true};
      onnx::Model model = network_of(test, variation);
      detach_functions(model);
      add(model, test, "plugin", variation, type.name, std::to_string(type.version));
      // TensorRT-RTX has no layer of its own for operators that Graft has under ONNX's name.
      onnx::Model with_function = network_of(test, variation);
      if (!type.onnx_form && attach_functions(with_function).empty()) {
        add(with_function, test, "function", variation, type.name, std::to_string(type.version));
      }
    }
  }

  void add(const onnx::Model& model, const OperatorCase& test, std::string_view kind, const Variation& variation,
           std::string_view plugin, std::string_view version) {
    const std::string file =
        fmt::format("{}_{}_{}{}_{}.onnx", plugin, version, test.name, variation.is_dynamic ? "_dynamic" : "", kind);
    onnx::write_onnx(model, folder_ / file);
    models_.push_back({{"file", file},
                       {"kind", kind},
                       {"operator", test.op->type().name},
                       {"plugin", plugin},
                       {"version", version},
                       {"dtype", to_string(test.inputs[0].dtype)},
                       {"result", to_string(output_descs(*test.op, test.inputs)[0].dtype)},
                       {"layout", to_string(test.inputs[0].layout)},
                       {"shapes", variation.is_dynamic ? profile_of(test.inputs[0].extents) : ""}});
  }

  /// Writes the fields of a few cases, for tests that create plugins without a network.
  void write_creators(const OperatorCases& all) {
    Json sets = Json::array();
    for (const OperatorCase* test : chosen_cases(all)) {
      Json fields = Json::object();
      for (const AttributeInfo& info : all.type->attributes) {
        fields[std::string(info.name)] = {{"type", to_string(info.type)},
                                          {"value", to_json(*test->op->get(info.name))}};
      }
      if (std::find(sets.begin(), sets.end(), fields) == sets.end()) sets.push_back(std::move(fields));
    }
    creators_.push_back(
        {{"name", all.type->name}, {"version", std::to_string(all.type->version)}, {"sets", std::move(sets)}});
  }

  std::filesystem::path folder_;
  Json models_ = Json::array();
  Json creators_ = Json::array();
};

void write_bytes(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Returns the reference kernel's first output, in the types of the case and in its actual size.
HostTensor reference_output(const OperatorCase& test, const std::vector<HostTensor>& inputs) {
  const std::vector<TensorDesc> outputs = output_descs(*test.op, test.inputs);
  std::vector<std::vector<std::byte>> results;
  for (const TensorDesc& desc : outputs) results.emplace_back(static_cast<std::size_t>(desc.storage_bytes()));
  std::vector<const void*> addresses;
  for (const HostTensor& input : inputs) addresses.push_back(input.bytes.data());
  std::vector<void*> result_addresses;
  for (auto& result : results) result_addresses.push_back(result.data());
  const Problem problem{test.inputs, outputs};
  Status status = test.op->run_cpu(problem, {addresses, result_addresses}, {});
  std::vector<Extents> extents;
  if (status.ok()) {
    status = read_extents(*test.op, problem, std::vector<const void*>(result_addresses.begin(), result_addresses.end()),
                          extents);
  }
  if (!status.ok()) throw std::runtime_error(status.message());
  HostTensor y{outputs[0], std::move(results[0])};
  y.desc.extents = extents[0];
  y.bytes.resize(static_cast<std::size_t>(y.desc.storage_bytes()));
  return y;
}

bool is_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

void write_functions(const std::filesystem::path& folder) {
  Json listed = Json::array();
  for (const auto& [type, cases] : operator_cases()) {
    for (const OperatorCase& test : cases) {
      const TensorDesc& x = test.inputs[0];
      if (!test.refused.empty() || test.large || x.layout != Layout::linear || test.shift != 0) continue;
      if (x.extents.element_count() > most_elements) continue;
      onnx::Model model = network_of(test, {.is_dynamic = false, .quantize = false});
      if (!attach_functions(model).empty()) continue;
      const std::string stem = fmt::format("{}_{}", type->name, test.name);
      const std::vector<HostTensor> inputs = make_inputs(test);
      onnx::write_onnx(model, folder / (stem + ".onnx"));
      write_bytes(folder / (stem + ".x"), inputs[0].bytes);
      const HostTensor y = reference_output(test, inputs);
      write_bytes(folder / (stem + ".y"), y.bytes);
      listed.push_back({{"case", stem},
                        {"dtype", to_string(x.dtype)},
                        {"result", to_string(y.desc.dtype)},
                        {"shape", std::vector<std::int64_t>(x.extents.begin(), x.extents.end())},
                        {"comparable", (test.fill == Fill::normal || test.fill == Fill::sparse) &&
                                           is_finite(expected_outputs(*test.op, inputs)[0].numbers)},
                        {"tolerance", test.tolerance},
                        {"absolute", test.absolute}});
    }
  }
  std::ofstream(folder / "manifest.json") << Json{{"cases", listed}}.dump(1) << '\n';
}

}  // namespace
}  // namespace graft::ops

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  if (what != "engines" && what != "functions") {
    std::cerr << "usage: case_models engines|functions OUT_FOLDER\n";
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[2];
    std::filesystem::create_directories(folder);
    if (what == "functions") {
      graft::ops::write_functions(folder);
      return 0;
    }
    graft::ops::Writer writer(folder);
    for (const graft::ops::OperatorCases& all : graft::ops::operator_cases()) writer.write(all);
    writer.finish();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "case_models: " << error.what() << '\n';
    return 4;
  }
}
