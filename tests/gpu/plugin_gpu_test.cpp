// Every case through the plugin library, driven as TensorRT drives it: build, serialize, re-create, enqueue, graph
// capture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "adapters/tensorrt/plugin_host.hpp"
#include "ops/operator_case.hpp"

namespace graft {
namespace {

tensorrt::PluginLibrary& library() {
  static tensorrt::PluginLibrary library(std::getenv("GRAFT_PLUGIN_LIBRARY"));
  return library;
}

tensorrt::PluginFields fields_of(const Operator& op) {
  tensorrt::PluginFields fields;
  for (const AttributeInfo& info : op.type().attributes) fields.emplace(info.name, *op.get(info.name));
  return fields;
}

class PluginOnGpu : public ::testing::TestWithParam<const ops::OperatorCase*> {};

TEST_P(PluginOnGpu, AgreesWithTheReference) {
  ASSERT_NE(std::getenv("GRAFT_PLUGIN_LIBRARY"), nullptr) << "set it to the path of libgraft_plugins.so";
  const ops::OperatorCase& test = *GetParam();
  const OperatorType& type = test.op->type();
  SCOPED_TRACE("reproduce: operator_gpu_test --gtest_filter=Cases/PluginOnGpu.AgreesWithTheReference/" +
               std::string(type.name) + "_" + test.name);
  nvinfer1::IPluginCreatorV3One* creator = library().find(std::string(type.name), std::to_string(type.version));
  ASSERT_NE(creator, nullptr);
  const tensorrt::BuiltPlugin built = tensorrt::build_plugin(*creator, fields_of(*test.op), test.inputs);
  const std::vector<ops::HostTensor> inputs = ops::make_inputs(test);
  const auto expected = expected_outputs(*test.op, inputs);
  std::vector<std::vector<std::byte>> data;
  for (const ops::HostTensor& input : inputs) data.push_back(input.bytes);
  std::size_t element = 1;  // no tensor lies off the alignment of its own type
  for (const auto* descs : {&test.inputs, &built.outputs}) {
    for (const TensorDesc& desc : *descs) element = std::max(element, size_of(desc.dtype));
  }
  const tensorrt::RunOptions options{
      .misalign = static_cast<std::size_t>(test.shift) * element, .capture = true, .any_order = test.any_order};
  const auto results = tensorrt::run_plugin(*creator, built, test.inputs, data, options);
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const float scale = ops::scale_of(*test.op, type.ports[type.input_count() + i].name);
    EXPECT_EQ(ops::compare({built.outputs[i], results[i]}, expected[i], test.tolerance, scale, test.absolute), "");
  }
}

std::vector<const ops::OperatorCase*> cases_for_plugins() {
  std::vector<const ops::OperatorCase*> tests;
  for (const auto& [type, cases] : ops::operator_cases()) {
    for (const ops::OperatorCase& test : cases) {
      if (test.refused.empty() && !test.large) tests.push_back(&test);
    }
  }
  return tests;
}
INSTANTIATE_TEST_SUITE_P(Cases, PluginOnGpu, ::testing::ValuesIn(cases_for_plugins()), [](const auto& info) {
  return std::string(info.param->op->type().name) + "_" + info.param->name;
});

}  // namespace
}  // namespace graft
