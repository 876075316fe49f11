// The program that calls this is linked without libraries, so the JSON is written here.
#include "operator_library/written_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ops/operator_case.hpp"

namespace graft::operator_library {
namespace {

using ops::HostTensor;
using ops::OperatorCase;

constexpr std::int64_t most_elements = 100'000;

std::string json(std::int64_t value) { return std::to_string(value); }
/// Returns the number as Python reads it, with enough digits for an f32.
std::string json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::string text(32, '\0');
  text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.17g", value)));
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
std::string json(float value) { return json(static_cast<double>(value)); }
std::string json(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}
std::string json(const std::string& value) { return json(std::string_view(value)); }
template <class T>
std::string json(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + json(value);
  return text + "]";
}

std::vector<std::int64_t> sizes_of(const Extents& extents) { return {extents.begin(), extents.end()}; }

void write_bytes(const std::filesystem::path& path, const std::byte* bytes, std::size_t count) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

/// Writes a tensor and returns its description.
std::string write_tensor(const std::filesystem::path& folder, const std::string& file, const HostTensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.desc.storage_bytes());
  write_bytes(folder / file, tensor.bytes.data(), std::min(count, tensor.bytes.size()));
  return "{\"file\": " + json(file) + ", \"dtype\": " + json(to_string(tensor.desc.dtype)) +
         ", \"shape\": " + json(sizes_of(tensor.desc.extents)) + "}";
}

bool is_written(const OperatorCase& test) {
  const auto is_ordinary = [](const TensorDesc& desc) {
    const std::int64_t count = desc.extents.element_count();
    return desc.layout == Layout::linear && count > 0 && count <= most_elements;
  };
  return test.refused.empty() && !test.large && test.shift == 0 &&
         (test.fill == ops::Fill::normal || test.fill == ops::Fill::sparse) &&
         std::all_of(test.inputs.begin(), test.inputs.end(), is_ordinary);
}

/// Returns the outputs of the reference kernel in the types of the case and in their actual sizes.
std::vector<HostTensor> reference_outputs(const OperatorCase& test, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> outputs;
  std::vector<const void*> addresses;
  std::vector<void*> result_addresses;
  const std::vector<TensorDesc> descs = ops::output_descs(*test.op, test.inputs, test.shape_values);
  outputs.reserve(descs.size());
  for (const TensorDesc& desc : descs) {
    outputs.push_back({desc, std::vector<std::byte>(static_cast<std::size_t>(desc.storage_bytes()))});
    result_addresses.push_back(outputs.back().bytes.data());
  }
  for (const HostTensor& input : inputs) addresses.push_back(input.bytes.data());
  const Problem problem{test.inputs, descs};
  Status status = test.op->run_cpu(problem, {addresses, result_addresses}, {});
  std::vector<Extents> extents;
  if (status.ok()) {
    const std::vector<const void*> found(result_addresses.begin(), result_addresses.end());
    status = read_extents(*test.op, problem, found, extents);
  }
  if (!status.ok()) throw std::runtime_error(test.name + ": " + std::string(status.message()));
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].desc.extents = extents[i];
  return outputs;
}

std::string write_case(const std::filesystem::path& folder, const OperatorCase& test) {
  const OperatorType& type = test.op->type();
  const std::string stem = std::string(type.name) + "_" + test.name;
  std::string attributes;
  for (const AttributeInfo& info : type.attributes) {
    attributes += (attributes.empty() ? "" : ", ") + json(info.name) + ": " +
                  std::visit([](const auto& value) { return json(value); }, *test.op->get(info.name));
  }
  const std::vector<HostTensor> inputs = ops::make_inputs(test);
  std::vector<std::string> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(write_tensor(folder, stem + ".in" + std::to_string(i), inputs[i]));
  }
  std::string listed = "{\"operator\": " + json(type.name) + ", \"case\": " + json(test.name) + ", \"attributes\": {" +
                       attributes + "}, \"inputs\": [";
  for (std::size_t i = 0; i < tensors.size(); ++i) listed += (i > 0 ? ", " : "") + tensors[i];
  listed += "], \"shape_values\": [";
  for (std::size_t i = 0; i < test.shape_values.size(); ++i) {
    listed += (i > 0 ? ", " : "") + json(sizes_of(test.shape_values[i]));
  }
  listed += "], \"outputs\": [";
  const std::vector<HostTensor> outputs = reference_outputs(test, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    listed += (i > 0 ? ", " : "") + write_tensor(folder, stem + ".out" + std::to_string(i), outputs[i]);
  }
  return listed + "], \"tolerance\": " + json(test.tolerance) + ", \"absolute\": " + json(test.absolute) + "}";
}

}  // namespace

void write_cases(const std::filesystem::path& folder) {
  std::string listed;
  for (const ops::OperatorCases& all : ops::operator_cases()) {
    for (const OperatorCase& test : all.cases) {
      if (is_written(test)) listed += (listed.empty() ? "\n" : ",\n") + write_case(folder, test);
    }
  }
  const std::string text = "{\"cases\": [" + listed + "]}\n";
  write_bytes(folder / "manifest.json", reinterpret_cast<const std::byte*>(text.data()), text.size());
}

}  // namespace graft::operator_library
