// Tests rules of the CPU engine; test_against_onnxruntime.py compares its values with ONNX Runtime.
#include "runtime/openvino/openvino_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <thread>

#include "io/npy.hpp"
#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "runtime/engine_limit.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/text_model.hpp"

namespace graft::runtime {
namespace {

using test::text_model;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

onnx::TensorData tensor(onnx::ElementType type, const std::vector<std::int64_t>& dims,
                        const std::vector<double>& values) {
  return onnx::TensorData::from_numbers(type, dims, values);
}

std::vector<double> some_numbers(std::size_t count) {
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = std::sin(static_cast<double>(i) * 1.7) * 3;
  return numbers;
}

std::vector<double> numbers_of(const TensorMap& tensors, const std::string& name) {
  return *tensors.at(name).numbers();
}

const Dim batch = Dim::symbol("batch");

TEST(CpuEngine, ReturnsEveryOutputInItsDeclaredType) {
  const std::unique_ptr<runtime::CompiledModel> model =
      runtime::openvino_engine().compile(text_model({{"x", onnx::ElementType::f32, {batch, 3}}},
                                                    "big = ArgMax<axis=1, keepdims=0>(x)\n"
                                                    "half = Cast<to=float16>(x)\n"
                                                    "brain = Cast<to=bfloat16>(x)\n"
                                                    "byte = Cast<to=int8>(x)\n"
                                                    "half32 = Cast<to=float>(half)\n"
                                                    "truth = Greater(x, half32)\n"
                                                    "count = Shape(x)\n"
                                                    "double = Cast<to=double>(x)\n",
                                                    {"big", "half", "brain", "byte", "truth", "count", "double"}));
  const TensorMap outputs = model->run({{"x", tensor(onnx::ElementType::f32, {2, 3}, {1, 5, 2, 7, -100, 3})}});
  EXPECT_EQ(outputs.at("big").type, onnx::ElementType::i64);
  EXPECT_THAT(*outputs.at("big").ints(), ElementsAre(1, 0));
  EXPECT_EQ(outputs.at("half").type, onnx::ElementType::f16);
  EXPECT_THAT(numbers_of(outputs, "half"), ElementsAre(1, 5, 2, 7, -100, 3));
  EXPECT_EQ(outputs.at("brain").type, onnx::ElementType::bf16);
  EXPECT_THAT(numbers_of(outputs, "brain"), ElementsAre(1, 5, 2, 7, -100, 3));
  EXPECT_EQ(outputs.at("byte").type, onnx::ElementType::i8);
  EXPECT_THAT(*outputs.at("byte").ints(), ElementsAre(1, 5, 2, 7, -100, 3));
  EXPECT_EQ(outputs.at("truth").type, onnx::ElementType::boolean);
  EXPECT_THAT(*outputs.at("truth").ints(), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(outputs.at("count").type, onnx::ElementType::i64);
  EXPECT_THAT(*outputs.at("count").ints(), ElementsAre(2, 3));
  EXPECT_EQ(outputs.at("double").type, onnx::ElementType::f64);
  EXPECT_THAT(numbers_of(outputs, "double"), ElementsAre(1, 5, 2, 7, -100, 3));
}

TEST(CpuEngine, TakesEveryNumericInputType) {
  for (const onnx::ElementType type : {onnx::ElementType::f32, onnx::ElementType::f16, onnx::ElementType::bf16,
                                       onnx::ElementType::f64, onnx::ElementType::i8, onnx::ElementType::u8,
                                       onnx::ElementType::i32, onnx::ElementType::i64, onnx::ElementType::boolean}) {
    SCOPED_TRACE(to_string(type));
    const std::unique_ptr<runtime::CompiledModel> model = runtime::openvino_engine().compile(
        text_model({{"x", type, {batch}}}, "y = Identity(x)\nz = Cast<to=int64>(x)", {"y", "z"}));
    const TensorMap outputs = model->run({{"x", tensor(type, {2}, {1, 0})}});
    EXPECT_EQ(outputs.at("y").type, type);
    EXPECT_THAT(numbers_of(outputs, "y"), ElementsAre(1, 0));
    EXPECT_EQ(outputs.at("z").type, onnx::ElementType::i64);
    EXPECT_THAT(*outputs.at("z").ints(), ElementsAre(1, 0));
  }
}

TEST(CpuEngine, OwnKernelsAgreeWithFunctions) {
  struct Case {
    std::string node;
    onnx::ElementType type;
    double tolerance;
  };
  // f32: a few roundings in sums of at most 60 squares. i8: one step, where the function in f32 and the kernel in f64
  // round a tie to different sides.
  const std::vector<Case> cases{
      {"graft::LeakyReLU<alpha=0.1>(x)", onnx::ElementType::f32, 1e-6},
      {"graft::L2Normalize<axes=[1]>(x)", onnx::ElementType::f32, 1e-6},
      {"graft::L2Normalize<axes=[-1, 1], epsilon_mode=\"norm\">(x)", onnx::ElementType::f32, 1e-6},
      {"graft::L2Normalize<axes=[1, 2, 3], epsilon_mode=\"add\", epsilon=1.0>(x)", onnx::ElementType::f32, 1e-6},
      {"graft::LeakyReLU<alpha=0.1>(x)", onnx::ElementType::f16, 2e-3},
      {"graft::L2Normalize<axes=[1]>(x)", onnx::ElementType::f16, 1e-3},
      {"graft::LeakyReLU<alpha=0.1>(x)", onnx::ElementType::bf16, 2e-2},
      {"graft::LeakyReLU<alpha=0.1, x_scale=0.5, y_scale=0.25>(x)", onnx::ElementType::i8, 1},
      {"graft::L2Normalize<axes=[1], x_scale=0.1, y_scale=0.0078125>(x)", onnx::ElementType::i8, 1},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.node + " in " + to_string(one.type));
    const onnx::Model model = text_model({{"x", one.type, {batch, 3, Dim::symbol("h"), 5}}}, "y = " + one.node, {"y"});
    const std::unique_ptr<runtime::CompiledModel> functions = runtime::openvino_engine().compile(
        model, {.kernels = runtime::OperatorKernels::functions, .extra_outputs = {}, .threads = 0});
    const std::unique_ptr<runtime::CompiledModel> own = runtime::openvino_engine().compile(
        model, {.kernels = runtime::OperatorKernels::own, .extra_outputs = {}, .threads = 0});
    for (const std::int64_t size : {1, 4, 7}) {
      const auto count = static_cast<std::size_t>(2 * 3 * size * 5);
      auto values = some_numbers(count);
      if (one.type == onnx::ElementType::i8) {
        for (double& value : values) value = std::round(value * 40);
      }
      const TensorMap inputs{{"x", tensor(one.type, {2, 3, size, 5}, values)}};
      const TensorMap left = functions->run(inputs);
      const TensorMap right = own->run(inputs);
      ASSERT_EQ(left.at("y").type, one.type);
      ASSERT_EQ(right.at("y").type, one.type);
      ASSERT_EQ(right.at("y").dims, left.at("y").dims);
      double largest = 0;
      const auto a = numbers_of(left, "y");
      const auto b = numbers_of(right, "y");
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_NEAR(a[i], b[i], one.tolerance * std::max(1.0, std::abs(a[i]))) << i;
        largest = std::max(largest, std::abs(a[i]));
      }
      EXPECT_GT(largest, 0);
    }
  }
}

TEST(CpuEngine, OwnKernelsRunInTheDeclaredTypeOrInF32) {
  // A kernel in f16 rounds its output, also where the next node is in f32.
  const onnx::Model model = text_model({{"x", onnx::ElementType::f16, {3}}},
                                       "a = graft::LeakyReLU<alpha=0.1>(x)\ny = Cast<to=float>(a)", {"y"});
  const TensorMap inputs{{"x", tensor(onnx::ElementType::f16, {3}, {-3, -7, 5})}};
  const auto found = [&](runtime::OperatorKernels kernels) {
    return numbers_of(runtime::openvino_engine().compile(model, {.kernels = kernels})->run(inputs), "y");
  };
  constexpr float alpha = 0.1F;
  EXPECT_THAT(found(runtime::OperatorKernels::own), ElementsAre(-0.300048828125, -0.7001953125, 5));
  EXPECT_THAT(found(runtime::OperatorKernels::own_in_f32), ElementsAre(-3 * alpha, -7 * alpha, 5));
}

TEST(CpuEngine, RunsAnOperatorWithoutAFunctionByItsKernel) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::i64, {batch, 2}}},
                                       "y, z = graft::DoubledPlus<bias=3>(x)\n"
                                       "s = ReduceMax<keepdims=0>(y)\n"
                                       "n = Not(z)",
                                       {"y", "z", "s", "n"});
  for (const runtime::OperatorKernels kernels : {runtime::OperatorKernels::functions, runtime::OperatorKernels::own}) {
    const std::unique_ptr<runtime::CompiledModel> engine =
        runtime::openvino_engine().compile(model, {.kernels = kernels, .extra_outputs = {}, .threads = 0});
    const TensorMap outputs = engine->run({{"x", tensor(onnx::ElementType::i64, {2, 2}, {1, -2, 5, 500000})}});
    EXPECT_EQ(outputs.at("y").type, onnx::ElementType::i64);
    EXPECT_THAT(*outputs.at("y").ints(), ElementsAre(5, -1, 13, 1000003));
    EXPECT_EQ(outputs.at("z").type, onnx::ElementType::boolean);
    EXPECT_THAT(*outputs.at("z").ints(), ElementsAre(0, 0, 1, 1));
    EXPECT_THAT(*outputs.at("s").ints(), ElementsAre(1000003));
    EXPECT_THAT(*outputs.at("n").ints(), ElementsAre(1, 1, 0, 0));
  }
}

TEST(CpuEngine, KnowsAPluginsNameAsTheOperatorItStandsFor) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, {3}}}, "y = TRT::LReLU_TRT<negSlope=0.5>(x)", {"y"});
  for (const runtime::OperatorKernels kernels : {runtime::OperatorKernels::functions, runtime::OperatorKernels::own}) {
    for (const char* domain : {"TRT", ""}) {
      model.graph().nodes()[0]->domain = domain;
      const std::unique_ptr<runtime::CompiledModel> engine =
          runtime::openvino_engine().compile(model, {.kernels = kernels, .extra_outputs = {}, .threads = 0});
      EXPECT_THAT(numbers_of(engine->run({{"x", tensor(onnx::ElementType::f32, {3}, {2, -2, -4})}}), "y"),
                  ElementsAre(2, -1, -2));
    }
  }
}

TEST(CpuEngine, RunsOperatorsInsideBranches) {
  onnx::Model model = text_model({{"c", onnx::ElementType::boolean, {}}, {"x", onnx::ElementType::f32, {3}}},
                                 "unused = Identity(x)", {});
  onnx::Graph& graph = model.graph();
  onnx::Node* branch = graph.add_node("If", {graph.find("c")}, {"y"});
  for (const auto& [name, text] :
       {std::pair("then_branch", "a = graft::LeakyReLU<alpha=0.5>(x)"), std::pair("else_branch", "a = Neg(x)")}) {
    auto body = std::make_unique<onnx::Graph>(&graph);
    parse_nodes(*body, text, {"a"}, [](std::string_view) { return std::nullopt; });
    body->name = name;
    branch->attributes.emplace(name, onnx::NodeAttribute(onnx::AttributeData(std::move(body))));
  }
  graph.add_output(*branch->output());
  for (const runtime::OperatorKernels kernels : {runtime::OperatorKernels::functions, runtime::OperatorKernels::own}) {
    const std::unique_ptr<runtime::CompiledModel> engine =
        runtime::openvino_engine().compile(model, {.kernels = kernels, .extra_outputs = {}, .threads = 0});
    const onnx::TensorData x = tensor(onnx::ElementType::f32, {3}, {2, -2, -4});
    EXPECT_THAT(numbers_of(engine->run({{"c", tensor(onnx::ElementType::boolean, {}, {1})}, {"x", x}}), "y"),
                ElementsAre(2, -1, -2));
    EXPECT_THAT(numbers_of(engine->run({{"c", tensor(onnx::ElementType::boolean, {}, {0})}, {"x", x}}), "y"),
                ElementsAre(-2, 2, 4));
  }
}

/// ONNX Runtime refuses this ratio, which has to be a scalar; OpenVINO's reader does not look at it.
TEST(CpuEngine, AnInputThatTheReaderLeavesOutIsNoDefectOfGraft) {
  const onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, {2}}, {"r", onnx::ElementType::f32, {7}}}, "y = Dropout(x, r)", {"y"});
  const auto compile = [&] { (void)runtime::openvino_engine().compile(model, {}); };
  EXPECT_THAT(compile, testing::Throws<Error>(testing::Property(&Error::kind, Error::Kind::bad_input)));
}

TEST(CpuEngine, ReturnsInnerValuesOnRequest) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::f32, {batch, 2}}},
                                       "a = Relu(x)\nb = Dropout(a)\nc = Exp(b)\nd = Identity(c)\ny = Neg(d)", {"y"});
  const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(
      model,
      {.kernels = runtime::OperatorKernels::functions, .extra_outputs = {"a", "b", "d", "y", "x"}, .threads = 0});
  const TensorMap outputs = engine->run({{"x", tensor(onnx::ElementType::f32, {1, 2}, {-1, 0})}});
  EXPECT_EQ(outputs.size(), 5U);
  EXPECT_THAT(numbers_of(outputs, "x"), ElementsAre(-1, 0));
  EXPECT_THAT(numbers_of(outputs, "a"), ElementsAre(0, 0));
  EXPECT_THAT(numbers_of(outputs, "b"), ElementsAre(0, 0));
  EXPECT_THAT(numbers_of(outputs, "d"), ElementsAre(1, 1));
  EXPECT_THAT(numbers_of(outputs, "y"), ElementsAre(-1, -1));
  EXPECT_THAT(
      [&] {
        (void)runtime::openvino_engine().compile(
            model, {.kernels = runtime::OperatorKernels::own, .extra_outputs = {"nothing"}, .threads = 0});
      },
      ThrowsMessage<Error>(HasSubstr("test.onnx: there is no tensor 'nothing'")));
}

TEST(CpuEngine, RunsWithOtherShapes) {
  const std::unique_ptr<runtime::CompiledModel> engine =
      runtime::openvino_engine().compile(text_model({{"x", onnx::ElementType::f32, {batch, Dim::symbol("n")}}},
                                                    "y = ReduceSum<keepdims=0>(x)\nz = Shape(x)", {"y", "z"}));
  for (const auto& dims : std::vector<std::vector<std::int64_t>>{{1, 1}, {3, 4}, {2, 100}, {3, 4}}) {
    const auto count = static_cast<std::size_t>(dims[0] * dims[1]);
    const TensorMap outputs = engine->run({{"x", tensor(onnx::ElementType::f32, dims, std::vector<double>(count, 2))}});
    EXPECT_THAT(numbers_of(outputs, "y"), ElementsAre(2.0 * static_cast<double>(count)));
    EXPECT_EQ(*outputs.at("z").ints(), dims);
  }
}

/// OpenVINO's CPU plugin overwrites such constants with the results of later nodes.
TEST(CpuEngine, KeepsWhatIsComputedOfConstants) {
  const auto whole = [](std::vector<std::int64_t> dims, const std::vector<double>& numbers) {
    return tensor(onnx::ElementType::i64, std::move(dims), numbers);
  };
  const std::vector<test::TextInput> inputs{{"u", onnx::ElementType::f32, {2, 2}},
                                            {"d", tensor(onnx::ElementType::f32, {2, 2}, {1, 2, 3, 4})},
                                            {"rows", whole({2, 1}, {1, 0})},
                                            {"places", whole({2, 2}, {1, 0, 1, 0})}};
  const std::vector<std::pair<std::string, std::vector<double>>> gathered{
      {"c = GatherND(d, rows)", {3, 4, 1, 2}},
      {"c = GatherElements<axis=1>(d, places)", {2, 1, 4, 3}},
      {"g = GatherND(d, rows)\nc = Neg(g)", {-3, -4, -1, -2}},
      {"g = GatherND(d, rows)\nc = GatherElements<axis=0>(g, places)", {1, 4, 1, 4}},
  };
  const std::vector<double> u{10, 20, 30, 40};
  for (const auto& [nodes, constant] : gathered) {
    for (const std::string op : {"Add", "Mul"}) {
      const std::unique_ptr<runtime::CompiledModel> engine =
          runtime::openvino_engine().compile(text_model(inputs, nodes + "\ny = " + op + "(c, u)", {"y"}));
      std::vector<double> expected;
      for (std::size_t i = 0; i < u.size(); ++i)
        expected.push_back(op == "Add" ? constant[i] + u[i] : constant[i] * u[i]);
      for (int run = 0; run < 3; ++run) {
        EXPECT_EQ(numbers_of(engine->run({{"u", tensor(onnx::ElementType::f32, {2, 2}, u)}}), "y"), expected)
            << nodes << ", " << op << ", run " << run;
      }
    }
  }
}

TEST(CpuEngine, DrawsRandomNumbersInEachRun) {
  const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(
      text_model({{"u", onnx::ElementType::f32, {8}}}, "r = RandomUniform<shape=[8]>()\ny = Add(r, u)", {"y"}));
  const TensorMap inputs{{"u", tensor(onnx::ElementType::f32, {8}, std::vector<double>(8, 0))}};
  EXPECT_NE(numbers_of(engine->run(inputs), "y"), numbers_of(engine->run(inputs), "y"));
}

TEST(CpuEngine, TakesAnInputThatNothingReads) {
  const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(
      text_model({{"unused", onnx::ElementType::f32, {2}}, {"x", onnx::ElementType::f32, {1}}}, "y = Neg(x)", {"y"}));
  const auto found = engine->run(
      {{"unused", tensor(onnx::ElementType::f32, {2}, {1, 2})}, {"x", tensor(onnx::ElementType::f32, {1}, {3})}});
  EXPECT_THAT(numbers_of(found, "y"), ElementsAre(-3));
}

TEST(CpuEngine, ReturnsAnOutputThatCarriesNotes) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, {1}}}, "y = Neg(x)", {"y"});
  model.graph().outputs()[0]->type = onnx::ElementType::f32;
  model.graph().outputs()[0]->opaque = "\x1a\x04note";  // doc_string of a ValueInfoProto
  const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(model);
  EXPECT_THAT(numbers_of(engine->run({{"x", tensor(onnx::ElementType::f32, {1}, {3})}}), "y"), ElementsAre(-3));
}

TEST(CpuEngine, TakesAnEmptyBatch) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::f32, {batch, 3}}}, "y = graft::L2Normalize(x)", {"y"});
  for (const runtime::OperatorKernels kernels : {runtime::OperatorKernels::functions, runtime::OperatorKernels::own}) {
    const std::unique_ptr<runtime::CompiledModel> engine =
        runtime::openvino_engine().compile(model, {.kernels = kernels, .extra_outputs = {}, .threads = 0});
    EXPECT_THAT(engine->run({{"x", tensor(onnx::ElementType::f32, {0, 3}, {})}}).at("y").dims, ElementsAre(0, 3));
    EXPECT_THAT(numbers_of(engine->run({{"x", tensor(onnx::ElementType::f32, {1, 3}, {0, 3, 4})}}), "y"),
                ElementsAre(0, testing::DoubleNear(0.6, 1e-6), testing::DoubleNear(0.8, 1e-6)));
  }
}

TEST(CpuEngine, RefusesInputsThatDoNotFit) {
  const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(
      text_model({{"x", onnx::ElementType::f32, {batch, 2}}, {"n", onnx::ElementType::i64, {1}}},
                 "m = Cast<to=float>(n)\ny = Add(x, m)", {"y"}));
  const auto run = [&](const TensorMap& inputs) { return [&engine, inputs] { (void)engine->run(inputs); }; };
  const onnx::TensorData x = tensor(onnx::ElementType::f32, {1, 2}, {1, 2});
  const onnx::TensorData n = tensor(onnx::ElementType::i64, {1}, {1});
  EXPECT_THAT(run({{"x", x}}), ThrowsMessage<Error>(HasSubstr("test.onnx: input 'n' (i64[1]) has no value")));
  EXPECT_THAT(run({{"x", x}, {"n", n}, {"m", n}}),
              ThrowsMessage<Error>(HasSubstr("the model has no input 'm'; its inputs are 'x', 'n'")));
  EXPECT_THAT(run({{"x", tensor(onnx::ElementType::f16, {1, 2}, {1, 2})}, {"n", n}}),
              ThrowsMessage<Error>(HasSubstr("input 'x': the tensor is f16[1, 2]; it must be f32[batch, 2]")));
  EXPECT_THAT(run({{"x", tensor(onnx::ElementType::f32, {2}, {1, 2})}, {"n", n}}),
              ThrowsMessage<Error>(HasSubstr("the tensor is f32[2]; it must be f32[batch, 2]")));
  EXPECT_THAT(run({{"x", tensor(onnx::ElementType::f32, {1, 3}, {1, 2, 3})}, {"n", n}}),
              ThrowsMessage<Error>(HasSubstr("the tensor is f32[1, 3]; it must be f32[batch, 2]")));
  const onnx::TensorData huge = onnx::TensorData::from_ints({std::int64_t{1} << 40});
  EXPECT_THAT(run({{"x", x}, {"n", huge}}),
              ThrowsMessage<Error>(HasSubstr("element 0 is 1099511627776; the CPU engine holds integers in 32 bits")));
}

TEST(CpuEngine, NamesTheNodeThatItCannotRead) {
  EXPECT_THAT(
      [] {
        (void)runtime::openvino_engine().compile(
            text_model({{"x", onnx::ElementType::f32, {3}}}, "y = strange::Unheard(x)", {"y"}));
      },
      ThrowsMessage<Error>(testing::AllOf(HasSubstr("test.onnx"), HasSubstr("Unheard"), HasSubstr("strange"))));
  EXPECT_THAT(
      [] {
        (void)runtime::openvino_engine().compile(text_model(
            {{"x", onnx::ElementType::f32, {2, 3}}, {"w", onnx::ElementType::f32, {2, 3}}}, "y = MatMul(x, w)", {"y"}));
      },
      ThrowsMessage<Error>(testing::AllOf(HasSubstr("test.onnx"), HasSubstr("MatMul"))));
  EXPECT_THAT(
      [] {
        (void)runtime::openvino_engine().compile(
            text_model({{"x", onnx::ElementType::f32, {3}}}, "y = graft::LeakyReLU<slope=0.1>(x)", {"y"}));
      },
      ThrowsMessage<Error>(HasSubstr("slope")));
  EXPECT_THAT(
      [] {
        (void)runtime::openvino_engine().compile(
            text_model({{"x", onnx::ElementType::i32, {3}}}, "y = graft::L2Normalize(x)", {"y"}),
            {.kernels = runtime::OperatorKernels::own, .extra_outputs = {}, .threads = 0});
      },
      ThrowsMessage<Error>(HasSubstr("L2Normalize does not take inputs of type i32")));
}

TEST(CpuEngine, NamesTheOperatorThatRefusesAtRunTime) {
  const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(
      text_model({{"x", onnx::ElementType::f32, {batch, 2}}}, "y = graft::L2Normalize<axes=[4]>(x)", {"y"}),
      {.kernels = runtime::OperatorKernels::own, .extra_outputs = {}, .threads = 0});
  EXPECT_THAT(
      [&] {
        (void)engine->run({{"x", tensor(onnx::ElementType::f32, {1, 2}, {1, 2})}});
      },
      ThrowsMessage<Error>(testing::AllOf(HasSubstr("test.onnx"), HasSubstr("L2Normalize"), HasSubstr("4"))));
}

TEST(CpuEngine, KeepsTheDefaultOfAnInput) {
  onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, {2}}, {"w", onnx::ElementType::f32, {2}}}, "y = Mul(x, w)", {"y"});
  model.graph().set_initializer(*model.graph().find("w"), tensor(onnx::ElementType::f32, {2}, {3, 4}));
  ASSERT_TRUE(model.graph().find("w")->is_input);
  const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(model);
  const onnx::TensorData x = tensor(onnx::ElementType::f32, {2}, {1, 2});
  EXPECT_THAT(numbers_of(engine->run({{"x", x}}), "y"), ElementsAre(3, 8));
  EXPECT_THAT([&] { (void)engine->run({{"x", x}, {"w", x}}); }, ThrowsMessage<Error>(HasSubstr("'w' has a default")));
}

TEST(CpuEngine, LeavesTheModelAsItIs) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, {2}}}, "y = graft::LeakyReLU<alpha=0.5>(x)", {"y"});
  const std::string before = serialize_onnx(model);
  const std::unique_ptr<runtime::CompiledModel> functions = runtime::openvino_engine().compile(model);
  const std::unique_ptr<runtime::CompiledModel> own = runtime::openvino_engine().compile(
      model, {.kernels = runtime::OperatorKernels::own, .extra_outputs = {"y"}, .threads = 0});
  EXPECT_EQ(serialize_onnx(model), before);
}

TEST(CpuEngine, SeveralModelsRunInThreads) {
  constexpr int thread_count = 4;
  const onnx::Model model = text_model(
      {{"x", onnx::ElementType::f32, {batch, 64}}},
      "a = graft::LeakyReLU<alpha=0.5>(x)\nb = graft::L2Normalize(a)\ny = graft::LeakyReLU<alpha=0.5>(b)", {"y"});
  std::array<std::vector<double>, thread_count> results;
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<runtime::CompiledModel> engine = runtime::openvino_engine().compile(
          model, {.kernels = i % 2 == 0 ? runtime::OperatorKernels::own : runtime::OperatorKernels::functions,
                  .extra_outputs = {},
                  .threads = 0});
      for (int repeat = 0; repeat < 20; ++repeat) {
        const std::int64_t rows = 1 + (i + repeat) % 3;
        (void)engine->run(
            {{"x", tensor(onnx::ElementType::f32, {rows, 64}, some_numbers(static_cast<std::size_t>(rows) * 64))}});
      }
      results[static_cast<std::size_t>(i)] =
          numbers_of(engine->run({{"x", tensor(onnx::ElementType::f32, {2, 64}, some_numbers(128))}}), "y");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_EQ(result.size(), 128U);
    for (std::size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], results[0][i], 1e-6);
  }
}

double digits_accuracy(const onnx::Model& model, runtime::OperatorKernels kernels) {
  const auto folder = golden_folder() / "../../examples/digits";
  const io::NpzArrays arrays = io::read_npz(folder / "digits_test.npz");
  const io::NpyArray& images = arrays.at("images");
  onnx::TensorData input;
  input.type = images.type;
  input.dims = images.shape;
  input.bytes = onnx::Bytes(std::string(reinterpret_cast<const char*>(images.data.data()), images.data.size()));
  const std::unique_ptr<runtime::CompiledModel> engine =
      runtime::openvino_engine().compile(model, {.kernels = kernels, .extra_outputs = {}, .threads = 0});
  const auto logits = numbers_of(engine->run({{"image", input}}), "logits");
  const auto* labels = reinterpret_cast<const std::int64_t*>(arrays.at("labels").data.data());
  const auto count = static_cast<std::size_t>(images.shape[0]);
  int right = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * 10);
    if (std::max_element(row, row + 10) - row == labels[i]) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

TEST(CpuEngine, RecognizesDigitsWithOperatorsInside) {
  onnx::Model model = onnx::read_onnx(golden_folder() / "../../examples/digits/digits.onnx");
  EXPECT_GE(digits_accuracy(model, runtime::OperatorKernels::functions), 0.97);
  int replaced = 0;
  for (onnx::Node* node : model.graph().nodes()) {
    if (!node->is("LeakyRelu")) continue;
    node->op_type = "LeakyReLU";
    node->domain = onnx_domain;
    ++replaced;
  }
  ASSERT_EQ(replaced, 3);
  model.graph().opset_imports[std::string(onnx_domain)] = 1;
  EXPECT_GE(digits_accuracy(model, runtime::OperatorKernels::functions), 0.97);
  EXPECT_GE(digits_accuracy(model, runtime::OperatorKernels::own), 0.97);
}

/// The expected values are those of ONNX's reference evaluator. OpenVINO treats the empty constants as scalars, and the
/// process crashes in Gather and GatherND.
TEST(CpuEngine, KeepsTheShapeOfWhatHasNoElements) {
  const auto empty = [](std::vector<std::int64_t> dims) {
    return onnx::TensorData::from_numbers(onnx::ElementType::i64, std::move(dims), {});
  };
  const onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, {1, 4, 2}}, {"none", empty({0})}, {"nowhere", empty({0, 2})}},
                 "along = Gather<axis=1>(x, none)\n"
                 "points = GatherND(x, nowhere)\n"
                 "same = Identity(nowhere)\n"
                 "zero = Constant<value=int64([0])>()\n"
                 "one = Constant<value=int64([1])>()\n"
                 "nothing = Slice(one, zero, zero)\n"
                 "computed = Gather<axis=1>(x, nothing)\n"
                 "joined = Concat<axis=1>(along, x)\n",
                 {"along", "points", "same", "computed", "joined"});
  const TensorMap outputs = runtime::openvino_engine().compile(model)->run(
      {{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}});
  EXPECT_THAT(outputs.at("along").dims, ElementsAre(1, 0, 2));
  EXPECT_THAT(outputs.at("points").dims, ElementsAre(0, 2));
  EXPECT_THAT(outputs.at("same").dims, ElementsAre(0, 2));
  EXPECT_THAT(outputs.at("computed").dims, ElementsAre(1, 0, 2));
  EXPECT_THAT(outputs.at("joined").dims, ElementsAre(1, 4, 2));
  EXPECT_THAT(numbers_of(outputs, "joined"), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

/// OpenVINO 2026.4 computes a window of this MaxPool that begins after the end of the input. The engine throws
/// EngineLimit, after which another engine computes the model.
TEST(CpuEngine, RefusesToReturnOutputsOfAnotherShape) {
  const std::unique_ptr<runtime::CompiledModel> model = runtime::openvino_engine().compile(
      text_model({{"x", onnx::ElementType::f32, {1, 1, Dim::symbol("h"), 2}}},
                 "y = MaxPool<kernel_shape=[1, 1], strides=[2, 2], ceil_mode=1>(x)", {"y"}));
  EXPECT_THAT(
      [&] {
        (void)model->run({{"x", tensor(onnx::ElementType::f32, {1, 1, 2, 2}, some_numbers(4))}});
      },
      ThrowsMessage<EngineLimit>(HasSubstr("OpenVINO returned output 'y' with the shape [1, 1, 2, 2] for the inputs "
                                           "x: f32[1, 1, 2, 2]; by ONNX's rules the shape is [1, 1, 1, 1]")));
}

/// The constants are computed while the model is compiled. OpenVINO does not check such an index and reads out of
/// bounds.
TEST(CpuEngine, ChecksIndicesOfConstants) {
  const auto far = onnx::TensorData::from_numbers(onnx::ElementType::i64, {1, 1}, {1e9});
  for (const char* nodes : {"g = GatherND(d, far)\ny = Add(x, g)", "g = GatherElements(d, far)\ny = Add(x, g)"}) {
    const onnx::Model model = text_model(
        {{"x", onnx::ElementType::f32, {1}}, {"d", tensor(onnx::ElementType::f32, {4, 1}, {1, 2, 3, 4})}, {"far", far}},
        nodes, {"y"});
    EXPECT_THAT([&] { (void)openvino_engine().compile(model); },
                ThrowsMessage<Error>(HasSubstr("an index lies outside of the tensor: 1000000000")));
  }
  const onnx::Model sum =
      text_model({{"x", onnx::ElementType::f32, {2}}}, "axis = Constant<value=int64(7)>()\ny = CumSum(x, axis)", {"y"});
  EXPECT_THAT(
      [&] { (void)openvino_engine().compile(sum); },
      ThrowsMessage<Error>(HasSubstr("it accepts the axis 7 of a tensor with 1 dimension, which ONNX does not allow")));
}

/// OpenVINO 2026.4 with one thread continues after an exception of one of Graft's nodes, which refuses its values, and
/// the outputs are uninitialized memory. The same happens where several streams share as many threads.
TEST(CpuEngine, RefusesLargeIntegersWithOneThreadToo) {
  const onnx::Model quotient =
      text_model({{"a", onnx::ElementType::i64, {4}}, {"b", onnx::ElementType::i64, {4}}}, "y = Div(a, b)", {"y"});
  const onnx::Model largest = text_model({{"a", onnx::ElementType::i32, {4}}, {"b", onnx::ElementType::i32, {4}}},
                                         "y = ReduceMax(a)\nz = Neg(b)", {"y", "z"});
  for (const onnx::Model* model : {&quotient, &largest}) {
    const onnx::ElementType type = model == &quotient ? onnx::ElementType::i64 : onnx::ElementType::i32;
    const TensorMap given{{"a", tensor(type, {4}, {-1394812702, -7, 6, 1937384451})},
                          {"b", tensor(type, {4}, {1, 2, 6, -6})}};
    for (const auto& [threads, streams] : {std::pair(1, 1), std::pair(2, 2), std::pair(4, 4)}) {
      const std::unique_ptr<runtime::CompiledModel> compiled =
          runtime::openvino_engine().compile(*model, {.threads = threads, .streams = streams});
      EXPECT_THAT([&] { (void)compiled->run(given); }, ThrowsMessage<Error>(HasSubstr("rounds integers beyond 2^24")))
          << threads << " threads for " << streams << " streams";
    }
  }
}

/// A file need not declare the types of internal tensors.
TEST(CpuEngine, RefusesProductsOfNarrowIntegersWhoseTypesAreNotDeclared) {
  for (const char* op : {"Add", "Sub", "Mul"}) {
    onnx::Model model = text_model({{"x", onnx::ElementType::i64, {4}}},
                                   std::string("a = Cast<to=5>(x)\nb = ") + op + "(a, a)\ny = Cast<to=7>(b)", {"y"});
    for (const char* name : {"a", "b"}) model.graph().find_local(name)->type.reset();
    EXPECT_THAT([&] { (void)openvino_engine().compile(model); }, ThrowsMessage<Error>(HasSubstr("do not wrap"))) << op;
  }
}

/// OpenVINO 2026.4 with one thread continues after an exception in a node's shape inference, without memory for the
/// output.
TEST(CpuEngine, StopsWhereSizesDoNotFitWithOneThreadToo) {
  const std::unique_ptr<runtime::CompiledModel> model =
      runtime::openvino_engine().compile(text_model({{"x", onnx::ElementType::f32, {batch, Dim::symbol("n")}}},
                                                    "a, b, c = Split<axis=1, num_outputs=3>(x)", {"a", "b", "c"}, 18),
                                         {.kernels = OperatorKernels::functions, .extra_outputs = {}, .threads = 1});
  EXPECT_THROW((void)model->run({{"x", tensor(onnx::ElementType::f32, {2, 8}, some_numbers(16))}}), Error);
  const TensorMap even = model->run({{"x", tensor(onnx::ElementType::f32, {2, 6}, some_numbers(12))}});
  EXPECT_THAT(even.at("c").dims, ElementsAre(2, 2));
}

TEST(ConstantGraph, IsComputedExactly) {
  const onnx::Model model = text_model({},
                                       "a = Constant<value_ints=[9007199254740993, -1]>()\n"
                                       "b = Constant<value=int64(2)>()\n"
                                       "product = Mul(a, b)\n"
                                       "quotient = Div(a, b)\n"
                                       "truth = Less(a, b)\n"
                                       "d = Constant<value=double([0.1, 3.0])>()\n"
                                       "narrower = Cast<to=float>(d)\n"
                                       "h = Constant<value=float16([1.0, 2.0])>()\n"
                                       "h3 = Constant<value=float16(3.0)>()\n"
                                       "narrow = Div(h, h3)\n"
                                       "size = Shape(a)\n",
                                       {"product", "quotient", "truth", "narrower", "narrow", "size"});
  const TensorMap outputs = runtime::openvino_engine().evaluate_constant_graph(model);
  EXPECT_EQ(outputs.at("product").type, onnx::ElementType::i64);
  EXPECT_THAT(*outputs.at("product").ints(), ElementsAre(18014398509481986, -2));
  EXPECT_THAT(*outputs.at("quotient").ints(), ElementsAre(4503599627370496, 0));
  EXPECT_EQ(outputs.at("truth").type, onnx::ElementType::boolean);
  EXPECT_THAT(*outputs.at("truth").ints(), ElementsAre(0, 1));
  EXPECT_EQ(outputs.at("narrower").type, onnx::ElementType::f32);
  EXPECT_THAT(numbers_of(outputs, "narrower"), ElementsAre(0.1F, 3.0));
  EXPECT_EQ(outputs.at("narrow").type, onnx::ElementType::f16);
  EXPECT_THAT(numbers_of(outputs, "narrow"),
              ElementsAre(0.333251953125, 0.66650390625));  // nearest to 1/3 and 2/3 in f16
  EXPECT_THAT(*outputs.at("size").ints(), ElementsAre(2));
}

TEST(ConstantGraph, MayHoldOperators) {
  const onnx::Model model =
      text_model({}, "x = Constant<value=float([-2.0, 2.0])>()\ny = graft::LeakyReLU<alpha=0.5>(x)", {"y"});
  EXPECT_THAT(numbers_of(runtime::openvino_engine().evaluate_constant_graph(model), "y"), ElementsAre(-1, 2));
}

TEST(ConstantGraph, RefusesInputsAndChance) {
  EXPECT_THROW((void)runtime::openvino_engine().evaluate_constant_graph(
                   text_model({{"x", onnx::ElementType::f32, {2}}}, "y = Neg(x)", {"y"})),
               Error);
  EXPECT_THAT(
      [] {
        (void)runtime::openvino_engine().evaluate_constant_graph(
            text_model({}, "y = RandomNormal<shape=[2]>()", {"y"}));
      },
      ThrowsMessage<Error>(HasSubstr("RandomNormal")));
}

TEST(ConstantGraph, RefusesWhatItCannotComputeExactly) {
  EXPECT_THAT(
      [] {
        (void)runtime::openvino_engine().evaluate_constant_graph(
            text_model({}, "d = Constant<value=double([0.1])>()\ny = Add(d, d)", {"y"}));
      },
      ThrowsMessage<Error>(HasSubstr("'y' cannot be computed in advance")));
}

}  // namespace
}  // namespace graft::runtime
