// Runs every case through the plugin library in TensorRT's order of calls: build, serialize, re-create, enqueue, graph
// capture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <stdexcept>

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

/// Compares the plugin's results with the reference. `announced`: the case whose sizes onShapeChange receives, if not
/// those of `test`.
void expect_reference(const ops::OperatorCase& test, const ops::OperatorCase* announced = nullptr) {
  ASSERT_NE(std::getenv("GRAFT_PLUGIN_LIBRARY"), nullptr) << "set it to the path of libgraft_plugins.so";
  const OperatorType& type = test.op->type();
  nvinfer1::IPluginCreatorV3One* creator = library().find(std::string(type.name), std::to_string(type.version));
  ASSERT_NE(creator, nullptr);
  const tensorrt::BuiltPlugin built = tensorrt::build_plugin(*creator, fields_of(*test.op), test.inputs);
  const std::vector<ops::HostTensor> inputs = ops::make_inputs(test);
  const auto expected = expected_outputs(*test.op, inputs);
  std::vector<std::vector<std::byte>> data;
  for (const ops::HostTensor& input : inputs) data.push_back(input.bytes);
  std::size_t element = 1;  // no tensor violates the alignment of its own type
  for (const auto* descs : {&test.inputs, &built.outputs}) {
    for (const TensorDesc& desc : *descs) element = std::max(element, size_of(desc.dtype));
  }
  std::vector<TensorDesc> announced_outputs;
  tensorrt::RunOptions options{
      .misalign = static_cast<std::size_t>(test.shift) * element, .capture = true, .any_order = test.any_order};
  if (announced != nullptr) {
    announced_outputs = tensorrt::build_plugin(*creator, fields_of(*announced->op), announced->inputs).outputs;
    options.announced_inputs = announced->inputs;
    options.announced_outputs = announced_outputs;
  }
  const auto results = tensorrt::run_plugin(*creator, built, test.inputs, data, options);
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const float scale = ops::scale_of(*test.op, type.ports[type.input_count() + i].name);
    EXPECT_EQ(ops::compare({built.outputs[i], results[i]}, expected[i], test.tolerance, scale, test.absolute), "");
  }
}

class PluginOnGpu : public ::testing::TestWithParam<const ops::OperatorCase*> {};

TEST_P(PluginOnGpu, AgreesWithTheReference) {
  const ops::OperatorCase& test = *GetParam();
  SCOPED_TRACE("reproduce: operator_gpu_test --gtest_filter=Cases/PluginOnGpu.AgreesWithTheReference/" +
               std::string(test.op->type().name) + "_" + test.name);
  expect_reference(test);
}

const ops::OperatorCase& case_named(std::string_view type, std::string_view name) {
  for (const auto& [known, cases] : ops::operator_cases()) {
    for (const ops::OperatorCase& test : cases) {
      if (known->name == type && test.name == name) return test;
    }
  }
  throw std::invalid_argument("no case " + std::string(name));
}

/// The sizes of a layer's outputs may depend on data, so enqueue gets other sizes than onShapeChange. Long sequences
/// have a variant that does not fit short ones.
TEST(PluginOnGpuAnnounced, RunsOtherSizesThanWereAnnounced) {
  const ops::OperatorCase& small = case_named("CausalConvWithState", "f32_3x5x2_4_2_silu");
  const ops::OperatorCase& large = case_named("CausalConvWithState", "f32_3x5x32_4_2_silu");
  expect_reference(small, &large);
  expect_reference(large, &small);
}

/// Returns y of a sequence that is computed one element at a time; each step reads the state that the previous one
/// updated in place.
ops::HostTensor outputs_of_steps(nvinfer1::IPluginCreatorV3One& creator, const tensorrt::BuiltPlugin& step,
                                 const std::vector<ops::HostTensor>& sequence, std::span<const TensorDesc> of_step) {
  const TensorDesc& all = sequence[0].desc;
  const auto rows = static_cast<std::size_t>(all.extents[0] * all.extents[1]);
  const auto length = static_cast<std::size_t>(all.extents[2]);
  std::vector<std::vector<std::byte>> data;
  for (const ops::HostTensor& input : sequence) data.push_back(input.bytes);
  ops::HostTensor result{.desc = all, .bytes = std::vector<std::byte>(sequence[0].bytes.size())};
  const auto copy_column = [&](std::size_t at, std::span<const std::byte> from, std::span<std::byte> to, bool gather) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t in_sequence = (row * length + at) * sizeof(float);
      const std::size_t in_step = row * sizeof(float);
      std::copy_n(from.data() + (gather ? in_sequence : in_step), sizeof(float),
                  to.data() + (gather ? in_step : in_sequence));
    }
  };
  data[0].resize(rows * sizeof(float));
  for (std::size_t at = 0; at < length; ++at) {
    copy_column(at, sequence[0].bytes, data[0], true);
    // There is no graph capture, as other contexts allocate memory meanwhile.
    const auto outputs = tensorrt::run_plugin(creator, step, of_step, data, {.capture = false});
    copy_column(at, outputs[0], result.bytes, false);
    data.back() = outputs[1];
  }
  return result;
}

/// Contexts of one plugin step through different sequences at the same time, on different streams.
TEST(PluginOnGpuState, OfContextsIsKeptApart) {
  const ops::OperatorCase& whole = case_named("CausalConvWithState", "f32_3x7x37_4_2_silu_in_place");
  const ops::OperatorCase& step = case_named("CausalConvWithState", "f32_3x7x1_4_2_silu_in_place");
  nvinfer1::IPluginCreatorV3One* creator = library().find("CausalConvWithState", "1");
  ASSERT_NE(creator, nullptr);
  const tensorrt::BuiltPlugin built = tensorrt::build_plugin(*creator, fields_of(*step.op), step.inputs);
  EXPECT_EQ(built.aliased, (std::vector<std::int32_t>{-1, 3}));
  std::vector<std::vector<ops::HostTensor>> sequences;
  std::vector<std::future<ops::HostTensor>> contexts;
  for (const char* name : {"first", "second", "third", "fourth"}) {
    ops::OperatorCase own = whole;
    own.name = name;  // the name determines the values
    sequences.push_back(ops::make_inputs(own));
  }
  for (const auto& sequence : sequences) {
    contexts.push_back(
        std::async(std::launch::async, [&] { return outputs_of_steps(*creator, built, sequence, step.inputs); }));
  }
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const auto expected = expected_outputs(*whole.op, sequences[i]);
    EXPECT_EQ(ops::compare(contexts[i].get(), expected[0], whole.tolerance, 1, whole.absolute), "");
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
