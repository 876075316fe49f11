// Tests the estimated cost of runs, and that an engine with a budget refuses runs beyond it.
#include "runtime/budget.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/machine_memory.hpp"
#include "tests/support/text_model.hpp"

namespace graft::runtime {
namespace {

using test::error_of;
using test::inferred_text_model;
using test::weight;
using testing::AnyOf;
using testing::HasSubstr;

/// An engine that counts its calls.
class CountingEngine final : public Engine {
 public:
  struct Counts {
    int compiled = 0;
    int runs = 0;
  };

  class Model final : public CompiledModel {
   public:
    explicit Model(Counts& counts) : counts_(counts) {}
    using CompiledModel::run;
    [[nodiscard]] std::unique_ptr<CompiledModel> new_request() const override {
      return std::make_unique<Model>(counts_);
    }
    void run(const TensorMap& /*inputs*/, const std::function<void(const TensorMap&)>& look) override {
      ++counts_.runs;
      look({});
    }

   private:
    Counts& counts_;
  };

  using Engine::compile;
  [[nodiscard]] std::string_view name() const override { return "counting"; }
  [[nodiscard]] const Engine* checked() const override { return this; }
  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& /*model*/,
                                                       const CompileOptions& /*options*/) const override {
    ++counts.compiled;
    return std::make_unique<Model>(counts);
  }
  [[nodiscard]] TensorMap evaluate_constant_graph(const onnx::Model& /*model*/) const override { return {}; }

  mutable Counts counts;
};

void run(CompiledModel& model, std::int64_t elements) {
  onnx::TensorData tensor;
  tensor.type = onnx::ElementType::f32;
  tensor.dims = {elements};  // its bytes are not read
  model.run({{"x", tensor}}, [](const TensorMap& /*outputs*/) {});
}

void run_with(CompiledModel& model, std::vector<std::int64_t> dims) {
  onnx::TensorData tensor;
  tensor.type = onnx::ElementType::f32;
  tensor.dims = std::move(dims);  // its bytes are not read
  model.run({{"x", tensor}}, [](const TensorMap& /*outputs*/) {});
}

TEST(EstimateCost, HoldsATensorUntilItsLastReader) {
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}},
                          "a = Concat<axis=0>(x, x)\nb = Concat<axis=0>(a, a)\ny = Relu(b)", {"y"});
  EXPECT_EQ(estimate_cost(model, {}).bytes, 0) << "no size is known";
  // Live tensors are x, b and y; a is not needed any more.
  EXPECT_EQ(estimate_cost(model, {{"x", Shape{1024}}}).bytes, (1024 + 4096 + 4096) * 4);
}

TEST(EstimateCost, CountsTheProductsOfMatrices) {
  const Shape shape{256, 1024};
  const auto seconds = [&](const char* nodes) {
    const onnx::Model model =
        inferred_text_model({{"x", onnx::ElementType::f32, shape}, weight("w", {1024, 1024})}, nodes, {"y"});
    return estimate_cost(model, {}).seconds;
  };
  EXPECT_GT(seconds("y = MatMul(x, w)"), 1.5 * seconds("y = Relu(x)"));
}

TEST(EstimateCost, CountsTheProductsOfATransposedMatrix) {
  const auto seconds = [](const Shape& shape, const char* nodes) {
    const onnx::Model model =
        inferred_text_model({{"x", onnx::ElementType::f32, shape}, weight("w", {1024, 8})}, nodes, {"y"});
    return estimate_cost(model, {}).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds({1024, 4}, "y = Gemm<transA=1>(x, w)"), seconds({4, 1024}, "y = Gemm(x, w)"));
}

/// A transposed convolution multiplies as often as the convolution with the same kernels and the sizes of input and
/// output exchanged. The difference of two sizes of kernels has no other costs.
TEST(EstimateCost, CountsTheProductsOfTransposedConvolutions) {
  const auto seconds = [](const Shape& x, const char* op, std::int64_t groups, std::int64_t size, std::int64_t pad) {
    const onnx::Model model = inferred_text_model(
        {{"x", onnx::ElementType::f32, x}, weight("w", {8, 4 / groups, size, size})},
        fmt::format("y = {}<strides=[2, 2], group={}, pads=[{}, {}, {}, {}]>(x, w)", op, groups, pad, pad, pad, pad),
        {"y"});
    return estimate_cost(model, {}).seconds;
  };
  for (const std::int64_t groups : {1, 4}) {
    const auto products = [&](const Shape& x, const char* op) {
      return seconds(x, op, groups, 6, 2) - seconds(x, op, groups, 2, 0);
    };
    const double of_conv = products({1, 4, 32, 32}, "Conv");
    EXPECT_GT(of_conv, 0);
    EXPECT_NEAR(products({1, 8, 16, 16}, "ConvTranspose") / of_conv, 1, 1e-6) << groups;
  }
}

TEST(EstimateCost, CountsWindowsOfAConstantSize) {
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {1}}},
                          "n = Constant<value=int64(2147483648)>()\nw = HannWindow(n)\ny = Mul(w, x)", {"y"});
  EXPECT_GT(estimate_cost(model, {}).bytes, 2. * 4 * (std::int64_t{1} << 31));
}

TEST(BudgetEngine, RefusesTensorsThatTakeTooMuchAtATime) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}}, "y = Relu(x)", {"y"});
  const auto limited = make_budget_engine(engine, model);
  const auto compiled = limited->compile(model);
  EXPECT_EQ(refusal_of(*compiled, {{"x", {1 << 20}}}), "");
  run(*compiled, 1 << 20);
  EXPECT_EQ(engine.counts.runs, 1);
  const std::string refused =
      "its tensors need 1024 MiB of memory at a time; the limit for a file of this size is 512 MiB";
  EXPECT_EQ(refusal_of(*compiled, {{"x", {1 << 27}}}), refused);
  EXPECT_EQ(error_of([&] { run(*compiled, 1 << 27); }), refused);
  EXPECT_EQ(error_of([&] { run(*compiled->new_request(), 1 << 27); }), refused);
  EXPECT_EQ(engine.counts.runs, 1);
  const auto plain = engine.compile(model);
  EXPECT_EQ(refusal_of(*plain, {{"x", {1 << 27}}}), "") << "it has no budget";
}

TEST(BudgetEngine, RefusesToCompileWhatDoublesAConstant) {
  const CountingEngine engine;
  std::string nodes = "a1 = Concat<axis=0>(c, c)\n";
  for (int i = 1; i < 24; ++i) {
    nodes +=
        "a" + std::to_string(i + 1) + " = Concat<axis=0>(a" + std::to_string(i) + ", a" + std::to_string(i) + ")\n";
  }
  const onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, Shape{1}}, weight("c", {16})},
                                                nodes + "y = Add(x, a24)", {"y"});
  const auto limited = make_budget_engine(engine, model);
  EXPECT_THAT(error_of([&] { (void)limited->compile(model); }),
              HasSubstr("the limit for a file of this size is 512 MiB"));
  EXPECT_THAT(error_of([&] { (void)limited->checked()->compile(model); }), HasSubstr("512 MiB"));
  EXPECT_THAT(error_of([&] { (void)limited->unchecked().compile(model); }), HasSubstr("512 MiB"));
  EXPECT_EQ(engine.counts.compiled, 0);
}

/// 64 bits do not hold the last sizes, so shape inference stops.
TEST(BudgetEngine, RefusesWhatDoublesWithoutEnd) {
  const CountingEngine engine;
  std::string nodes = "a1 = Concat<axis=0>(x, x)\n";
  for (int i = 1; i < 200; ++i) {
    nodes +=
        "a" + std::to_string(i + 1) + " = Concat<axis=0>(a" + std::to_string(i) + ", a" + std::to_string(i) + ")\n";
  }
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}}, nodes, {"a200"});
  const auto compiled = make_budget_engine(engine, model)->compile(model);
  EXPECT_THAT(refusal_of(*compiled, {{"x", {1}}}), HasSubstr("the limit for a file of this size is 512 MiB"));
}

TEST(BudgetEngine, AllRunsOfAFileShareItsTime) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}}, "y = Relu(x)", {"y"});
  const auto limited = make_budget_engine(engine, model);
  const auto first = limited->compile(model);
  const auto second = limited->checked()->compile(model);
  std::string refused;
  constexpr int most = 1000;
  for (int i = 0; i < most && refused.empty(); ++i) {
    refused = error_of([&] { run(*(i % 2 == 0 ? first : second), 1 << 22); });
  }
  EXPECT_THAT(refused, HasSubstr("the limit for a file of this size is 10 s"));
  EXPECT_GT(engine.counts.runs, 10);
  EXPECT_THROW(run(*first, 1 << 22), OverBudget);
}

TEST(BudgetEngine, LargeFilesMayTakeMore) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}, weight("w", {1 << 24})},
                          "a = Add(w, w)\ny = Relu(x)", {"y"});
  const auto compiled = make_budget_engine(engine, model)->compile(model);
  EXPECT_THAT(refusal_of(*compiled, {{"x", {1 << 27}}}), HasSubstr("the limit for a file of this size is 768 MiB"));
}

/// TensorRT's limit, which holds for inner tensors, constants and inputs.
TEST(LimitedEngine, RefusesTensorsOfMoreElementsThanTensorRTTakes) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{1, Dim::symbol("n")}}},
                          "s = Constant<value=int64([65536, 1])>()\nt = Expand(x, s)\ny = ReduceSum(t)", {"y"});
  const auto limited = make_limited_engine(engine);
  const auto compiled = limited->compile(model);
  const auto run_with = [&](std::int64_t columns) {
    onnx::TensorData tensor;
    tensor.type = onnx::ElementType::f32;
    tensor.dims = {1, columns};
    compiled->run({{"x", tensor}}, [](const TensorMap& /*outputs*/) {});
  };
  run_with(32767);  // 2,147,418,112 elements
  EXPECT_EQ(error_of([&] { run_with(32768); }),
            "test.onnx: node 't' (Expand) computes 't' of 65536 x 32768 elements; a tensor of TensorRT has at most "
            "2147483647 elements, and the CPU engine does not compute larger tensors\n"
            "Use smaller inputs, or correct the sizes in the program that wrote the model");
  EXPECT_EQ(engine.counts.runs, 1);
}

TEST(LimitedEngine, RefusesAConstantSizeWhenItCompiles) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n"), 4}}},
                          "p = Constant<value=int64([0, 0, 0, 2147483647])>()\nt = Pad(x, p)\ny = ReduceSum(t)", {"y"});
  EXPECT_THAT(error_of([&] { (void)make_limited_engine(engine)->compile(model); }),
              HasSubstr("node 't' (Pad) computes 't' of n x 2147483651 elements"));
  EXPECT_EQ(engine.counts.compiled, 0);
}

/// NumPy, through which ONNX Runtime gets its inputs, has no such tensor: "array is too big".
TEST(LimitedEngine, RefusesAnEmptyTensorWithSizesBeyondTheLimit) {
  const CountingEngine engine;
  constexpr std::int64_t large = std::int64_t{1} << 40;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{large, 0, large}}}, "y = Neg(x)", {"y"});
  EXPECT_THAT(error_of([&] { (void)make_limited_engine(engine)->compile(model); }),
              HasSubstr("1099511627776 x 0 x 1099511627776 elements"));
  const onnx::Model empty = inferred_text_model({{"x", onnx::ElementType::f32, Shape{0, 4}}}, "y = Neg(x)", {"y"});
  EXPECT_NO_THROW((void)make_limited_engine(engine)->compile(empty));
}

TEST(LimitedEngine, RunsInputsThatGrowUntilTheyReachTheLimit) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{1, Dim::symbol("n")}}},
                          "t = Transpose<perm=[1, 0]>(x)\np = MatMul(t, x)\ny = ReduceSum(p)", {"y"});
  const auto compiled = make_limited_engine(engine)->compile(model);
  std::string refused;
  for (std::int64_t size = 1; refused.empty() && size < (1 << 20); size += std::max<std::int64_t>(size / 4, 1)) {
    refused = error_of([&] { run_with(*compiled, {1, size}); });
    EXPECT_EQ(refused.empty(), size * size <= most_elements) << size;
  }
  EXPECT_THAT(refused, HasSubstr("computes 'p' of"));
}

/// 0 and 1 are about the same, but not the tensors that they lead to.
TEST(LimitedEngine, EstimatesEachSize) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n"), 1}}},
                          "s = Constant<value=int64([1, 2000000000])>()\nt = Expand(x, s)\ny = ReduceSum(t)", {"y"});
  const auto compiled = make_limited_engine(engine)->compile(model);
  EXPECT_EQ(error_of([&] { run_with(*compiled, {1, 1}); }), "");
  EXPECT_THAT(error_of([&] { run_with(*compiled, {2, 1}); }), HasSubstr("2 x 2000000000 elements"));
  const onnx::Model padded =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n"), 1}}},
                          "r = Constant<value=int64([60000, 1])>()\na = Tile(x, r)\n"
                          "q = Constant<value=int64([1, 60000])>()\nc = Transpose<perm=[1, 0]>(x)\nb = Tile(c, q)\n"
                          "t = MatMul(a, b)\ny = ReduceSum(t)",
                          {"y"});
  const auto tiled = make_limited_engine(engine)->compile(padded);
  EXPECT_EQ(error_of([&] { run_with(*tiled, {0, 1}); }), "");
  EXPECT_THAT(error_of([&] { run_with(*tiled, {1, 1}); }), HasSubstr("60000 x 60000 elements"));
}

TEST(ComparisonEngine, LimitsTheMemoryAndTheTimeOfOneRun) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}}, "y = Relu(x)", {"y"});
  const auto compiled = make_comparison_engine(engine, model, {})->compile(model);
  for (int i = 0; i < 1000; ++i) run(*compiled, 1 << 25);
  EXPECT_EQ(engine.counts.runs, 1000) << "runs do not share the time";
  EXPECT_EQ(error_of([&] { run(*compiled, 1 << 28); }),
            "test.onnx: a comparison on synthetic inputs needs about 10240 MiB of memory; the limit on "
            "this machine is 2048 MiB; the largest tensor: input 'x' has 268435456 elements\n"
            "Set smaller sizes with VerifyOptions::shapes, or provide real inputs with QuantizeOptions::data, for "
            "which there is no such limit");
  const onnx::Model product = inferred_text_model(
      {{"x", onnx::ElementType::f32, Shape{Dim::symbol("n"), Dim::symbol("n")}}}, "y = MatMul(x, x)", {"y"});
  const auto multiplied = make_comparison_engine(engine, product, {{"x", {1 << 14, 1 << 14}}})->compile(product);
  EXPECT_EQ(error_of([&] { run_with(*multiplied, {1 << 12, 1 << 12}); }), "");
  const std::string refused = error_of([&] { run_with(*multiplied, {1 << 14, 1 << 14}); });
  EXPECT_THAT(refused, AnyOf(HasSubstr("s; the limit for a file of this size is 60 s"),
                             HasSubstr("MiB of memory; the limit on this machine is")));
}

/// The scores that a comparison of a TopK reads are held like outputs.
TEST(ComparisonEngine, CountsExtraOutputs) {
  const CountingEngine engine;
  const onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}},
                                                "a = Neg(x)\ny = ReduceMax(a)", {"y"});
  const auto limited = make_comparison_engine(engine, model, {});
  EXPECT_EQ(error_of([&] { run(*limited->compile(model), 1 << 27); }), "");
  EXPECT_THAT(error_of([&] { run(*limited->compile(model, {.extra_outputs = {"a"}}), 1 << 27); }),
              HasSubstr("needs about 5120 MiB of memory"));
}

/// A model with static sizes may take half of the memory of the machine. Nobody can give it smaller sizes.
TEST(ComparisonEngine, StaticSizesMayTakeMore) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {256, 512, 1024}}},
                          "a = Relu(x)\nb = Concat<axis=1>(a, a)\nc = Relu(b)\ny = ReduceMax(c)", {"y"});
  const double half = usable_memory() / 2;
  const double needed = estimate_cost(model, {}).bytes;
  EXPECT_GE(needed, 2048. * (1 << 20));
  const auto limited = make_comparison_engine(engine, model, {});
  const std::string refused = error_of([&] { (void)limited->compile(model); });
  if (half >= 3 * needed) {
    EXPECT_EQ(refused, "");
  }
  const onnx::Model large = inferred_text_model({{"x", onnx::ElementType::f64, {most_elements}}}, "y = Neg(x)", {"y"});
  EXPECT_THAT(error_of([&] { (void)make_comparison_engine(engine, large, {})->compile(large); }),
              HasSubstr("elements\nProvide real inputs with QuantizeOptions::data"));
}

TEST(EstimateCost, CubicResizesTakeLong) {
  const auto seconds = [](const char* mode) {
    const onnx::Model model = inferred_text_model(
        {{"x", onnx::ElementType::f32, {1, 3, 64, 64}}},
        fmt::format("n = Constant<value=int64([1, 3, 512, 512])>()\ny = Resize<mode={}>(x, _, _, n)", mode), {"y"});
    return estimate_cost(model, {}).seconds;
  };
  EXPECT_GT(seconds("\"cubic\""), 50 * seconds("\"linear\""));
}

/// Engines compute f16 in f32, but hold 8 bits in 8 bits.
TEST(EstimateCost, CountsTheBytesOfTheTypes) {
  const auto bytes = [](onnx::ElementType type) {
    return estimate_cost(inferred_text_model({{"x", type, {1024}}}, "y = Identity(x)", {"y"}), {}).bytes;
  };
  EXPECT_EQ(bytes(onnx::ElementType::u8), 2 * 1024);
  EXPECT_EQ(bytes(onnx::ElementType::f16), 2 * 4096);
  EXPECT_EQ(bytes(onnx::ElementType::f64), 2 * 8192);
}

}  // namespace
}  // namespace graft::runtime
