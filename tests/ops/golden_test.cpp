// Compares reference kernels with values that PyTorch and TensorFlow computed
// (tests/golden/generators/make_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graft/operator/registry.hpp"
#include "io/npy.hpp"
#include "ops/operator_case.hpp"
#include "ops/reference.hpp"
#include "tests/support/folders.hpp"

namespace graft::ops {
namespace {

AttributeValue attribute_value(const AttributeInfo& info, const nlohmann::json& json) {
  switch (info.type) {
    case AttributeType::float_number: return static_cast<float>(json.get<double>());
    case AttributeType::integer: return json.get<std::int64_t>();
    case AttributeType::text: return json.get<std::string>();
    case AttributeType::float_numbers: return json.get<std::vector<float>>();
    case AttributeType::integers: return json.get<std::vector<std::int64_t>>();
  }
  return {};
}

/// Converts float32 of the file to the type of the case; integers stay as they are.
HostTensor make_tensor(const TensorDesc& desc, const io::NpyArray& array) {
  HostTensor tensor{.desc = desc, .bytes = std::vector<std::byte>(static_cast<std::size_t>(desc.storage_bytes()))};
  if (array.type != onnx::ElementType::f32) {  // integers
    EXPECT_EQ(array.type, onnx::to_element_type(desc.dtype));
    tensor.bytes = array.data;
    return tensor;
  }
  const auto* values = reinterpret_cast<const float*>(array.data.data());
  EXPECT_TRUE(dispatch(desc.dtype, [&](auto element) -> Status {
                using Element = decltype(element);
                auto* stored = reinterpret_cast<Element*>(tensor.bytes.data());
                for (std::int64_t i = 0; i < desc.storage_count(); ++i) {
                  if constexpr (!std::same_as<Element, std::int8_t>) stored[i] = static_cast<Element>(values[i]);
                }
                return {};
              }).ok());
  return tensor;
}

std::vector<double> numbers(const io::NpyArray& array) {
  std::vector<double> values(static_cast<std::size_t>(array.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (array.type) {
      case onnx::ElementType::f64:
        std::memcpy(&values[i], array.data.data() + i * sizeof(double), sizeof(double));
        break;
      case onnx::ElementType::f32: values[i] = reinterpret_cast<const float*>(array.data.data())[i]; break;
      case onnx::ElementType::i64:
        values[i] = static_cast<double>(reinterpret_cast<const std::int64_t*>(array.data.data())[i]);
        break;
      case onnx::ElementType::i8: values[i] = static_cast<double>(static_cast<std::int8_t>(array.data[i])); break;
      default: ADD_FAILURE() << "unexpected type " << to_string(array.type);
    }
  }
  return values;
}

/// Compares a result with the exact one. The reference computes in double, so it differs only by the rounding to the
/// stored type. A sum that it keeps in f32 adds half of an f32 rounding, and f32 constants of the operator's definition
/// add `absolute`. i8 must agree exactly: no golden value lies near a tie.
void expect_equal(const HostTensor& found, const std::vector<double>& exact, double absolute) {
  constexpr double relative_error = 1.0 / (1 << 24);
  const auto expect_integers = [&](const auto* stored) {
    EXPECT_EQ(std::vector<double>(stored, stored + exact.size()), exact);
  };
  if (found.desc.dtype == DType::i64) {
    return expect_integers(reinterpret_cast<const std::int64_t*>(found.bytes.data()));
  }
  if (found.desc.dtype == DType::i32) {
    return expect_integers(reinterpret_cast<const std::int32_t*>(found.bytes.data()));
  }
  ASSERT_TRUE(dispatch(found.desc.dtype, [&](auto element) -> Status {
                using Element = decltype(element);
                const auto* stored = reinterpret_cast<const Element*>(found.bytes.data());
                for (std::size_t i = 0; i < exact.size(); ++i) {
                  const auto value = static_cast<double>(static_cast<float>(stored[i]));
                  const bool exactly = found.desc.dtype == DType::i8 || !std::isfinite(exact[i]);
                  const double slack = exactly ? 0 : std::abs(exact[i]) * relative_error + absolute;
                  const auto low = static_cast<double>(static_cast<float>(store<Element>(exact[i] - slack, 1)));
                  const auto high = static_cast<double>(static_cast<float>(store<Element>(exact[i] + slack, 1)));
                  const bool good = (value >= low && value <= high) || (std::isnan(value) && std::isnan(exact[i]));
                  EXPECT_TRUE(good) << "element " << i << ": found " << value << ", PyTorch has " << exact[i];
                }
                return {};
              }).ok());
}

/// Returns the operator of this name, or the operator that replaces a plugin of this name.
const OperatorType* find_by_any_name(const std::string& name) {
  for (const OperatorType* type : operators()) {
    if (type->name == name) return type;
    for (const DropIn& drop_in : type->drop_ins) {
      if (drop_in.plugin_name == name) return type;
    }
  }
  return nullptr;
}

class Golden : public testing::TestWithParam<std::string_view> {};

TEST_P(Golden, ReferenceAgreesWithTheFrameworks) {
  const std::string stem = golden_folder().string() + "/ops/" + std::string(GetParam());
  const nlohmann::json file = nlohmann::json::parse(std::ifstream(stem + ".json"));
  const io::NpzArrays arrays = io::read_npz(stem + ".npz");
  const OperatorType* type = find_by_any_name(file.at("operator").get<std::string>());
  ASSERT_NE(type, nullptr);
  ASSERT_GT(file.at("cases").size(), 10U);
  for (const auto& golden : file.at("cases")) {
    SCOPED_TRACE(golden.at("name").get<std::string>());
    Attributes attributes;
    for (const auto& [name, value] : golden.at("attributes").items()) {
      const AttributeInfo* info = type->find_attribute(name);
      ASSERT_NE(info, nullptr);
      attributes.emplace_back(name, attribute_value(*info, value));
    }
    const auto op = make_operator(*type, attributes);
    TensorDesc desc{
        .dtype = *parse_dtype(golden.at("dtype").get<std::string>()), .layout = Layout::linear, .extents = {}};
    ASSERT_TRUE(Extents::make(golden.at("shape").get<std::vector<std::int64_t>>(), desc.extents).ok());
    std::vector<HostTensor> inputs{make_tensor(desc, arrays.at(golden.at("x").get<std::string>()))};
    for (const std::string& name : golden.value("more", std::vector<std::string>())) {
      const onnx::ElementType type_of_array = arrays.at(name).type;
      TensorDesc further{.dtype = type_of_array == onnx::ElementType::f32 ? desc.dtype : *onnx::to_dtype(type_of_array),
                         .layout = Layout::linear,
                         .extents = {}};
      ASSERT_TRUE(Extents::make(arrays.at(name).shape, further.extents).ok());
      inputs.push_back(make_tensor(further, arrays.at(name)));
    }
    std::vector<TensorDesc> input_descs;
    std::vector<const void*> input_addresses;
    for (const HostTensor& input : inputs) {
      input_descs.push_back(input.desc);
      input_addresses.push_back(input.bytes.data());
    }
    const std::vector<TensorDesc> descs = output_descs(*op, input_descs);
    std::vector<HostTensor> outputs;
    for (const TensorDesc& each : descs) {
      outputs.push_back(
          {each, std::vector<std::byte>(static_cast<std::size_t>(each.storage_bytes()), std::byte{0x5A})});
    }
    std::vector<void*> addresses;
    for (HostTensor& each : outputs) addresses.push_back(each.bytes.data());
    const Problem problem{input_descs, descs};
    Status status = op->run_cpu(problem, {input_addresses, addresses}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<Extents> extents;
    status = read_extents(*op, problem, std::vector<const void*>(addresses.begin(), addresses.end()), extents);
    ASSERT_TRUE(status.ok()) << status.message();
    // Where f32 arithmetic overflows or underflows, the frameworks' f32 result is expected.
    const std::string y_name = golden.contains("y_f32") ? golden.at("y_f32") : golden.at("y");
    EXPECT_EQ(std::vector(extents[0].begin(), extents[0].end()), arrays.at(y_name).shape);
    expect_equal(outputs[0], numbers(arrays.at(y_name)), golden.value("absolute", 0.0));
    std::size_t further = 0;
    for (const std::string& name : golden.value("more_y", std::vector<std::string>())) {
      SCOPED_TRACE(name);
      ++further;
      EXPECT_EQ(std::vector(extents[further].begin(), extents[further].end()), arrays.at(name).shape);
      expect_equal(outputs[further], numbers(arrays.at(name)), golden.value("absolute", 0.0));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Golden, testing::Values(GRAFT_OPERATOR_FOLDERS),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace graft::ops
