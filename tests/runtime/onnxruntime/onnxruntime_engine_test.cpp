// Tests ONNX Runtime as an engine: it agrees with OpenVINO, or with known own values, and reports errors.
#include "runtime/onnxruntime/onnxruntime_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <string>

#include "engine/driver.hpp"
#include "graft/error.hpp"
#include "runtime/engine_limit.hpp"
#include "runtime/openvino/openvino_engine.hpp"
#include "tests/support/text_model.hpp"
#include "toolkit/cpu_engines.hpp"

namespace graft::runtime {
namespace {

using onnx::ElementType;
using test::text_model;
using test::TextInput;
using test::weight;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

const Engine& judge() { return toolkit::engine_of(toolkit::CpuEngine::onnxruntime, toolkit::Purpose::values); }

onnx::TensorData tensor(ElementType type, const std::vector<std::int64_t>& dims, const std::vector<double>& numbers) {
  return onnx::TensorData::from_numbers(type, dims, numbers);
}

onnx::TensorData wave(ElementType type, const std::vector<std::int64_t>& dims) {
  onnx::TensorData sized{type, dims, {}, nullptr, "", false, ""};
  std::vector<double> numbers(static_cast<std::size_t>(sized.element_count()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i) * 1.7) * 3;
  return tensor(type, dims, numbers);
}

std::vector<double> numbers_of(const TensorMap& tensors, const std::string& name) {
  return *tensors.at(name).numbers();
}

TEST(OnnxruntimeEngine, has_a_name_with_its_version) {
  EXPECT_THAT(std::string(judge().name()), StartsWith("ONNX Runtime 1."));
}

struct Network {
  std::string name;
  std::vector<TextInput> inputs;
  std::string nodes;
  bool rounds_to_bf16 = false;  ///< OpenVINO rounds internally to bf16 on some processors.
};

class BothEngines : public testing::TestWithParam<Network> {};

TEST_P(BothEngines, give_the_same) {
  const onnx::Model model = text_model(GetParam().inputs, GetParam().nodes, {"y"});
  TensorMap given;
  for (const TextInput& input : GetParam().inputs) {
    if (input.constant) continue;
    std::vector<std::int64_t> dims;
    for (const Dim& dim : *input.shape) dims.push_back(dim.is_constant() ? dim.value() : 2);
    given.emplace(input.name, wave(input.type, dims));
  }
  const TensorMap expected = openvino_engine().compile(model)->run(given);
  const TensorMap found = judge().compile(model)->run(given);
  ASSERT_EQ(found.at("y").type_and_shape(), expected.at("y").type_and_shape());
  const std::vector<double> left = numbers_of(expected, "y");
  const std::vector<double> right = numbers_of(found, "y");
  ASSERT_FALSE(left.empty());
  const double step = GetParam().rounds_to_bf16 ? 8e-3 : found.at("y").type == ElementType::f16 ? 1e-3 : 1e-5;
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], step * (1 + std::abs(left[i]))) << i;
}

const Dim batch = Dim::symbol("batch");

INSTANTIATE_TEST_SUITE_P(
    Networks, BothEngines,
    testing::Values(
        Network{"convolution",
                {{"x", ElementType::f32, {batch, 3, 7, 5}}, weight("w", {4, 3, 3, 3})},
                "c = Conv<pads=[1, 1, 1, 1]>(x, w)\ny = Relu(c)"},
        Network{
            "product", {{"x", ElementType::f32, {batch, 6}}, weight("w", {6, 4})}, "m = MatMul(x, w)\ny = Softmax(m)"},
        Network{"operator_of_grafts", {{"x", ElementType::f32, {batch, 6}}}, "y = graft::LeakyReLU<alpha=0.1>(x)"},
        Network{"operator_of_grafts_in_f16",
                {{"x", ElementType::f16, {batch, 6}}},
                "a = Exp(x)\ny = graft::LeakyReLU<alpha=0.1>(a)"},
        Network{"half_precision", {{"x", ElementType::f16, {8, 8}}}, "a = MatMul(x, x)\nb = Softmax(a)\ny = Mul(b, a)"},
        Network{"bfloat", {{"x", ElementType::bf16, {8, 8}}}, "a = MatMul(x, x)\ny = Tanh(a)", true},
        Network{"bfloat_inside",
                {{"x", ElementType::f32, {8, 8}}},
                "a = Cast<to=bfloat16>(x)\nb = MatMul(a, a)\ny = Cast<to=float>(b)",
                true},
        Network{"half_precision_inside",
                {{"x", ElementType::f32, {8, 8}}},
                "a = Cast<to=float16>(x)\nb = Mul(a, a)\ny = Cast<to=float>(b)"},
        Network{"branches",
                {{"x", ElementType::f32, {batch, 6}}},
                "s = ReduceSum<keepdims=0>(x)\nz = Constant<value=float(0)>()\nc = Greater(s, z)\nn = Neg(x)\n"
                "y = Where(c, x, n)"},
        Network{"integers", {{"x", ElementType::i32, {9}}}, "d = Constant<value=int32(2)>()\ny = Div(x, d)"},
        Network{"quantized",
                {{"x", ElementType::f32, {4, 9}}},
                "s = Constant<value=float(0.02)>()\nz = Constant<value=int8(3)>()\nq = QuantizeLinear(x, s, z)\n"
                "y = DequantizeLinear(q, s, z)"}),
    [](const auto& info) { return info.param.name; });

TEST(OnnxruntimeEngine, keeps_integers_of_64_bits_and_doubles) {
  const onnx::Model model = text_model({{"i", ElementType::i64, {2}}, {"d", ElementType::f64, {1}}},
                                       "j = Add(i, i)\ne = Mul(d, d)", {"j", "e"});
  const std::int64_t large = (std::int64_t{1} << 61) + 1;
  const TensorMap found = judge().compile(model)->run(
      {{"i", onnx::TensorData::from_ints({large, -3})}, {"d", tensor(ElementType::f64, {1}, {1.1})}});
  EXPECT_THAT(*found.at("j").ints(), ElementsAre(2 * large, -6));
  EXPECT_THAT(numbers_of(found, "e"), ElementsAre(1.1 * 1.1));
}

/// ONNX Runtime itself starts the second run from the running statistics of the first, because a Neg reads them. The
/// expected values are those of the formula in ONNX's documentation: x has the mean 2 and the variance 1.
TEST(OnnxruntimeEngine, starts_each_run_with_the_running_statistics_of_the_file) {
  for (const ElementType type : {ElementType::f32, ElementType::f16}) {
    const onnx::Model model =
        text_model({{"x", type, {2, 1, 2}},
                    {"s", tensor(type, {1}, {1})},
                    {"b", tensor(type, {1}, {0})},
                    {"m", tensor(type, {1}, {4})},
                    {"v", tensor(type, {1}, {3})}},
                   "y, m1, v1 = BatchNormalization<training_mode=1, momentum=0.5>(x, s, b, m, v)\n"
                   "rm = Neg(m1)\nrv = Neg(v1)\nkept = Neg(m)",
                   {"y", "rm", "rv", "kept"});
    const auto compiled = judge().compile(model, {.round_inside = true});
    for (int run = 0; run < 3; ++run) {
      const TensorMap found = compiled->run({{"x", tensor(type, {2, 1, 2}, {1, 3, 3, 1})}});
      EXPECT_THAT(numbers_of(found, "rm"), ElementsAre(-3)) << run;
      EXPECT_THAT(numbers_of(found, "rv"), ElementsAre(-2)) << run;
      EXPECT_THAT(numbers_of(found, "kept"), ElementsAre(-4)) << run;
    }
  }
}

/// The expected values are those of onnxruntime 1.31 and of numpy.float16 for these casts.
TEST(OnnxruntimeEngine, rounds_to_f16_where_the_model_casts_as_openvino_does) {
  const float infinity = std::numeric_limits<float>::infinity();
  const onnx::Model reals =
      text_model({{"x", ElementType::f32, {4}}}, "a = Cast<to=float16>(x)\ny = Cast<to=float>(a)", {"y"});
  const onnx::Model alike =
      text_model({{"x", ElementType::f32, {4}}},
                 "h = Constant<value=float16(1.0)>()\na = CastLike(x, h)\ny = Cast<to=float>(a)", {"y"});
  const onnx::Model integers =
      text_model({{"x", ElementType::i64, {3}}}, "a = Cast<to=float16>(x)\ny = Cast<to=int64>(a)", {"y"});
  for (const Engine* engine : {&judge(), &openvino_engine()}) {
    for (const onnx::Model* model : {&reals, &alike}) {
      const TensorMap given{{"x", tensor(ElementType::f32, {4}, {70000, 1.0001, 2.123456, -3})}};
      EXPECT_THAT(numbers_of(engine->compile(*model)->run(given), "y"), ElementsAre(infinity, 1, 2.123046875, -3))
          << engine->name();
    }
    const TensorMap given{{"x", onnx::TensorData::from_ints({2049, -2051, 7})}};
    EXPECT_THAT(*engine->compile(integers)->run(given).at("y").ints(), ElementsAre(2048, -2052, 7)) << engine->name();
  }
}

/// f16 cannot represent 2049, and bf16 not 1 / 3: rounding shows in the next sum.
TEST(OnnxruntimeEngine, rounds_narrow_types_where_they_leave_or_inside) {
  const onnx::Model half =
      text_model({{"x", ElementType::f16, {1}}}, "a = Add(x, x)\nb = Add(a, x)\ny = Sub(b, a)", {"y", "b"});
  const TensorMap given{{"x", tensor(ElementType::f16, {1}, {683})}};  // 683, 1366, 2049 or 2048
  EXPECT_THAT(numbers_of(judge().compile(half)->run(given), "y"), ElementsAre(683));
  EXPECT_THAT(numbers_of(judge().compile(half)->run(given), "b"), ElementsAre(2048));
  EXPECT_THAT(numbers_of(judge().compile(half, {.round_inside = true})->run(given), "y"), ElementsAre(682));
  const onnx::Model cast =
      text_model({{"x", ElementType::f32, {1}}}, "a = Cast<to=bfloat16>(x)\ny = Cast<to=float>(a)", {"y"});
  EXPECT_THAT(numbers_of(judge().compile(cast)->run({{"x", tensor(ElementType::f32, {1}, {1 + 1.0 / 256})}}), "y"),
              ElementsAre(1))
      << "to nearest even, as OpenVINO's engine does";
}

TEST(OnnxruntimeEngine, extra_outputs_defaults_and_side_by_side) {
  onnx::Model model =
      text_model({{"x", ElementType::f32, {batch, 3}}, weight("w", {3})}, "a = Add(x, w)\ny = Neg(a)", {"y"});
  model.graph().set_is_input(*model.graph().find_local("w"), true);
  const std::unique_ptr<CompiledModel> first =
      judge().compile(model, {.extra_outputs = {"a"}, .threads = 1, .streams = 2});
  const std::unique_ptr<CompiledModel> second = first->new_request();
  const auto run = [](CompiledModel& compiled, std::int64_t rows) {
    for (int i = 0; i < 20; ++i) {
      const TensorMap found = compiled.run({{"x", wave(ElementType::f32, {rows, 3})}});
      const std::vector<double> sums = numbers_of(found, "a");
      const std::vector<double> negated = numbers_of(found, "y");
      ASSERT_EQ(sums.size(), static_cast<std::size_t>(3 * rows));
      for (std::size_t k = 0; k < sums.size(); ++k) EXPECT_EQ(sums[k], -negated[k]);
    }
  };
  std::future<void> beside = std::async(std::launch::async, [&] { run(*second, 5); });
  run(*first, 2);
  beside.get();
  EXPECT_THAT(
      [&] {
        (void)first->run({{"x", wave(ElementType::f32, {1, 3})}, {"w", wave(ElementType::f32, {3})}});
      },
      ThrowsMessage<Error>(HasSubstr("input 'w' has a default value in the file")));
  EXPECT_TRUE(first->run({{"x", wave(ElementType::f32, {0, 3})}}).at("y").bytes.view().empty());
}

TEST(OnnxruntimeEngine, computes_constant_graphs) {
  const onnx::Model constant =
      text_model({}, "a = Constant<value=int64([4611686018427387904, -3])>()\nb = Neg(a)\ny = Sub(b, a)", {"b"});
  EXPECT_THAT(*judge().evaluate_constant_graph(constant).at("b").ints(), ElementsAre(-(std::int64_t{1} << 62), 3));
  EXPECT_THAT([] { (void)judge().evaluate_constant_graph(text_model({}, "y = RandomNormal<shape=[2]>()", {"y"})); },
              ThrowsMessage<Error>(HasSubstr("returns different values in each run")));
  EXPECT_THAT(
      [] {
        (void)judge().evaluate_constant_graph(text_model({{"x", ElementType::f32, {1}}}, "y = Neg(x)", {"y"}));
      },
      ThrowsMessage<Error>(HasSubstr("a constant graph has no inputs; found 'x'")));
}

TEST(OnnxruntimeEngine, leaves_own_kernels_to_the_other) {
  const onnx::Model model = text_model({{"x", ElementType::f32, {4}}}, "y = graft::LeakyReLU<alpha=0.1>(x)", {"y"});
  const TensorMap given{{"x", wave(ElementType::f32, {4})}};
  const CompileOptions own{.kernels = OperatorKernels::own};
  EXPECT_TRUE(judge()
                  .compile(model, own)
                  ->run(given)
                  .at("y")
                  .same_as(openvino_engine().compile(model, own)->run(given).at("y")));
  EXPECT_THAT([] { toolkit::check_own_kernels(toolkit::CpuEngine::onnxruntime, true); },
              ThrowsMessage<Error>(HasSubstr("does not run Graft's own CPU kernels")));
}

TEST(OnnxruntimeEngine, says_what_it_refuses) {
  const auto compile = [](const onnx::Model& model) { (void)judge().compile(model); };
  EXPECT_THAT(
      [&] {
        compile(text_model({{"x", ElementType::f32, {3}}}, "y = strange::Unheard(x)", {"y"}));
      },
      ThrowsMessage<Error>(AllOf(StartsWith("test.onnx: the CPU engine cannot compile this model: ONNX Runtime 1."),
                                 HasSubstr("Unheard"))));
  EXPECT_THAT(
      [&] {
        compile(text_model({{"x", ElementType::string, {3}}}, "y = Identity(x)", {"y"}));
      },
      ThrowsMessage<Error>(HasSubstr("input 'x' is of type string, which the CPU engine does not accept")));
  EXPECT_THAT(
      [&] {
        (void)judge().compile(text_model({{"x", ElementType::f32, {3}}}, "y = Neg(x)", {"y"}),
                              {.extra_outputs = {"nowhere"}});
      },
      ThrowsMessage<Error>(HasSubstr("there is no tensor 'nowhere'")));
  const std::unique_ptr<CompiledModel> gather = judge().compile(
      text_model({{"x", ElementType::f32, {3}}, {"i", ElementType::i64, {1}}}, "y = Gather(x, i)", {"y"}));
  EXPECT_THAT(
      [&] {
        (void)gather->run({{"x", wave(ElementType::f32, {3})}, {"i", onnx::TensorData::from_ints({9})}});
      },
      ThrowsMessage<Error>(AllOf(StartsWith("test.onnx: cannot run with i: int64[1], x: float32[3]: ONNX Runtime 1."),
                                 HasSubstr("idx=9"))));
  EXPECT_THAT(
      [&] {
        (void)gather->run({{"x", wave(ElementType::f32, {3})}});
      },
      ThrowsMessage<Error>(HasSubstr("input 'i' (i64[1]) has no value; the model's inputs are 'x', 'i'")));
  EXPECT_THAT(
      [&] {
        (void)gather->run({{"x", wave(ElementType::f16, {3})}, {"i", onnx::TensorData::from_ints({1})}});
      },
      ThrowsMessage<Error>(HasSubstr("input 'x': the tensor is f16[3]; it must be f32[3]")));
  EXPECT_THAT(
      numbers_of(gather->run({{"x", wave(ElementType::f32, {3})}, {"i", onnx::TensorData::from_ints({0})}}), "y"),
      ElementsAre(0))
      << "it goes on after a run that failed";
}

WorkerCommand command_with(std::vector<std::string> python_arguments) {
  engine::EngineDriver driver = engine::find_engine_driver();
  driver.module = "graft.runtime";
  engine::DriverCommand command = engine::command_of(driver);
  if (!python_arguments.empty()) {
    python_arguments.insert(python_arguments.begin(), driver.python.string());
    command.arguments = std::move(python_arguments);
  }
  return {.arguments = command.arguments, .environment = command.environment};
}

TEST(OnnxruntimeEngine, a_python_without_onnxruntime) {
  const std::unique_ptr<Engine> engine = make_onnxruntime_engine(
      [] {
        return command_with({"-c",
                             "import runpy, sys; sys.modules['onnxruntime'] = None; "
                             "runpy.run_module('graft.runtime', run_name='__main__')"});
      },
      openvino_engine());
  try {
    (void)engine->compile(text_model({{"x", ElementType::f32, {3}}}, "y = Neg(x)", {"y"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::missing_tool);
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("ONNX Runtime is not installed"), HasSubstr("-m pip install onnxruntime")));
  }
}

TEST(OnnxruntimeEngine, stopped_in_a_run) {
  std::string products = "a0 = MatMul(x, x)\n";
  for (int i = 0; i < 400; ++i) {
    products += "a" + std::to_string(i + 1) + " = MatMul(a" + std::to_string(i) + ", x)\n";
  }
  // The process of this engine ends with the test, although the run would take minutes.
  const std::unique_ptr<Engine> engine = make_onnxruntime_engine([] { return command_with({}); }, openvino_engine());
  std::atomic<bool> stops{false};
  const std::unique_ptr<CompiledModel> minutes =
      engine->compile(text_model({{"x", ElementType::f32, {2048, 2048}}}, products + "y = Neg(a400)", {"y"}),
                      {.should_stop = [&] { return stops.load(); }});
  stops = true;
  EXPECT_THROW((void)minutes->run({{"x", wave(ElementType::f32, {2048, 2048})}}), Stopped);
  const onnx::Model negation = text_model({{"x", ElementType::f32, {1}}}, "y = Neg(x)", {"y"});
  EXPECT_THAT(numbers_of(engine->compile(negation)->run({{"x", tensor(ElementType::f32, {1}, {2})}}), "y"),
              ElementsAre(-2))
      << "the process still runs other models";
}

TEST(OnnxruntimeEngine, killed_in_a_run) {
  const std::filesystem::path number =
      std::filesystem::temp_directory_path() / ("graft_onnxruntime_" + std::to_string(::getpid()));
  const std::unique_ptr<Engine> engine = make_onnxruntime_engine(
      [&] {
        return command_with({"-c", "import os, runpy; open('" + number.string() +
                                       "', 'w').write(str(os.getpid())); "
                                       "runpy.run_module('graft.runtime', run_name='__main__')"});
      },
      openvino_engine());
  std::string products = "a0 = MatMul(x, x)\n";
  for (int i = 0; i < 400; ++i) {
    products += "a" + std::to_string(i + 1) + " = MatMul(a" + std::to_string(i) + ", x)\n";
  }
  const std::unique_ptr<CompiledModel> minutes =
      engine->compile(text_model({{"x", ElementType::f32, {2048, 2048}}}, products + "y = Neg(a400)", {"y"}));
  std::future<TensorMap> result = std::async(std::launch::async, [&] {
    return minutes->run({{"x", wave(ElementType::f32, {2048, 2048})}});
  });
  EXPECT_EQ(result.wait_for(std::chrono::milliseconds(1500)), std::future_status::timeout);
  ::pid_t process = 0;
  std::ifstream(number) >> process;
  ASSERT_GT(process, 0);
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  EXPECT_THAT([&] { (void)result.get(); },
              ThrowsMessage<EngineLimit>(HasSubstr(" ended by signal 9 while it ran this model")));
  const onnx::Model negation = text_model({{"x", ElementType::f32, {1}}}, "y = Neg(x)", {"y"});
  EXPECT_THAT(numbers_of(engine->compile(negation)->run({{"x", tensor(ElementType::f32, {1}, {2})}}), "y"),
              ElementsAre(-2))
      << "by a new process";
  std::filesystem::remove(number);
}

}  // namespace
}  // namespace graft::runtime
