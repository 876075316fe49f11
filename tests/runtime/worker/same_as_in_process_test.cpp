// Tests that the engine in a child process returns the same bits and throws the same errors as the one in this process.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "graft/error.hpp"
#include "onnx/functions.hpp"
#include "runtime/engine_limit.hpp"
#include "runtime/openvino/openvino_engine.hpp"
#include "runtime/worker/worker_engine.hpp"
#include "tests/support/text_model.hpp"

namespace graft::runtime {
namespace {

using test::text_model;
using test::TextInput;

const Engine& remote_engine() {
  const char* const program = std::getenv("GRAFT_ENGINE_WORKER");
  static const std::unique_ptr<Engine> engine = make_worker_engine(program == nullptr ? "" : program);
  return *engine;
}

onnx::TensorData wave(onnx::ElementType type, const std::vector<std::int64_t>& dims) {
  onnx::TensorData sized{type, dims, {}, nullptr, "", false, ""};
  std::vector<double> numbers(static_cast<std::size_t>(sized.element_count()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i) * 1.7) * 3;
  return onnx::TensorData::from_numbers(type, dims, numbers);
}

void expect_same(const TensorMap& found, const TensorMap& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(found.at(name).same_as(tensor))
        << name << ": " << to_string(found.at(name)) << ", expected " << to_string(tensor);
  }
}

struct Ending {
  std::optional<Error::Kind> kind;
  std::string text;
  bool is_engine_limit = false;
  friend bool operator==(const Ending&, const Ending&) = default;
};

Ending ending_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const EngineLimit& limit) {
    return {limit.kind(), limit.what(), true};
  } catch (const Error& error) {
    return {error.kind(), error.what(), false};
  }
  return {};
}

void expect_same_error(const std::function<void(const Engine&)>& act) {
  const Ending expected = ending_of([&] { act(openvino_engine()); });
  EXPECT_TRUE(expected.kind.has_value());
  const Ending found = ending_of([&] { act(remote_engine()); });
  EXPECT_EQ(found.kind, expected.kind);
  EXPECT_EQ(found.text, expected.text);
  EXPECT_EQ(found.is_engine_limit, expected.is_engine_limit);
}

onnx::Model network() {
  return text_model({{"x", onnx::ElementType::f32, {onnx::unknown_dim(), 4, 6, 6}}},
                    "shape = Constant<value=int64([4, 4, 3, 3])>()\n"
                    "w = ConstantOfShape<value=float([0.3])>(shape)\n"
                    "c = Conv<pads=[1, 1, 1, 1]>(x, w)\n"
                    "l = graft::LeakyReLU<alpha=0.1>(c)\n"
                    "e = Exp(l)\n"
                    "m = GlobalAveragePool(e)\n"
                    "y = Div(e, m)",
                    {"y"});
}

TEST(SameAsInProcess, functions_own_kernels_extra_outputs_and_rounding_inside) {
  const onnx::Model model = network();
  const TensorMap inputs{{"x", wave(onnx::ElementType::f32, {2, 4, 6, 6})}};
  for (const OperatorKernels kernels : {OperatorKernels::functions, OperatorKernels::own}) {
    const CompileOptions options{.kernels = kernels, .extra_outputs = {"l", "m"}, .threads = 1};
    expect_same(remote_engine().compile(model, options)->run(inputs),
                openvino_engine().compile(model, options)->run(inputs));
  }
  const onnx::Model halves =
      text_model({{"x", onnx::ElementType::f16, {8, 8}}},
                 "a = MatMul(x, x)\nb = Softmax(a)\nc = Cast<to=bfloat16>(b)\ny = Cast<to=double>(c)", {"a", "c", "y"});
  const TensorMap half_inputs{{"x", wave(onnx::ElementType::f16, {8, 8})}};
  for (const bool round_inside : {false, true}) {
    const CompileOptions options{.round_inside = round_inside};
    expect_same(remote_engine().compile(halves, options)->run(half_inputs),
                openvino_engine().compile(halves, options)->run(half_inputs));
  }
}

TEST(SameAsInProcess, integers_booleans_and_sizes_that_depend_on_data) {
  const onnx::Model model =
      text_model({{"i", onnx::ElementType::i64, {4}}, {"b", onnx::ElementType::boolean, {4}}},
                 "j = Mul(i, i)\nk = NonZero(b)\nn = Not(b)\ns = Cast<to=int8>(i)", {"j", "k", "n", "s"});
  const TensorMap inputs{{"i", onnx::TensorData::from_ints({-5, 0, 7, 40000})},
                         {"b", onnx::TensorData::from_numbers(onnx::ElementType::boolean, {4}, {1, 0, 0, 1})}};
  expect_same(remote_engine().compile(model)->run(inputs), openvino_engine().compile(model)->run(inputs));
  const onnx::Model constant = text_model({},
                                          "a = Constant<value=int64([4611686018427387904, -3])>()\nb = Mul(a, a)\n"
                                          "y = Add(a, b)",
                                          {"y"});
  expect_same(remote_engine().evaluate_constant_graph(constant), openvino_engine().evaluate_constant_graph(constant));
}

TEST(SameAsInProcess, errors) {
  const TensorMap good{{"x", wave(onnx::ElementType::f32, {1, 4, 6, 6})}};
  const auto run = [&](const TensorMap& inputs) {
    expect_same_error([&](const Engine& engine) { (void)engine.compile(network())->run(inputs); });
  };
  run({});
  run({{"z", good.at("x")}});
  run({{"x", wave(onnx::ElementType::f16, {1, 4, 6, 6})}});
  run({{"x", wave(onnx::ElementType::f32, {1, 5, 6, 6})}});
  run({{"x", onnx::TensorData::from_strings({"text"})}});
  const onnx::Model integers = text_model({{"i", onnx::ElementType::i64, {1}}}, "y = Neg(i)", {"y"});
  expect_same_error([&](const Engine& engine) {
    (void)engine.compile(integers)->run({{"i", onnx::TensorData::from_ints({std::int64_t{1} << 40})}});
  });
  const onnx::Model gather =
      text_model({{"x", onnx::ElementType::f32, {3}}, {"i", onnx::ElementType::i64, {1}}}, "y = Gather(x, i)", {"y"});
  expect_same_error([&](const Engine& engine) {
    (void)engine.compile(gather)->run(
        {{"x", wave(onnx::ElementType::f32, {3})}, {"i", onnx::TensorData::from_ints({9})}});
  });
  const onnx::Model unknown = text_model({{"x", onnx::ElementType::f32, {3}}}, "y = strange::Unheard(x)", {"y"});
  expect_same_error([&](const Engine& engine) { (void)engine.compile(unknown); });
  expect_same_error([&](const Engine& engine) { (void)engine.compile(network(), {.extra_outputs = {"nowhere"}}); });
  expect_same_error([&](const Engine& engine) { (void)engine.evaluate_constant_graph(network()); });
  const onnx::Model random = text_model({}, "y = RandomNormal<shape=[2]>()", {"y"});
  expect_same_error([&](const Engine& engine) { (void)engine.evaluate_constant_graph(random); });
}

}  // namespace
}  // namespace graft::runtime
