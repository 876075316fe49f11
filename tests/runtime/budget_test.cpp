// Tests the estimated cost of runs, and that an engine with a budget refuses runs beyond it.
#include "runtime/budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/text_model.hpp"

namespace graft::runtime {
namespace {

using test::error_of;
using test::inferred_text_model;
using test::weight;
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
  const std::string refused = "its tensors take 1024 MiB at a time; a file of this size may take 512 MiB";
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
  EXPECT_THAT(error_of([&] { (void)limited->compile(model); }), HasSubstr("a file of this size may take 512 MiB"));
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
  EXPECT_THAT(refusal_of(*compiled, {{"x", {1}}}), HasSubstr("a file of this size may take 512 MiB"));
}

TEST(BudgetEngine, AllRunsOfAFileShareItsTime) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}}, "y = Relu(x)", {"y"});
  int refusals = 0;
  const auto limited = make_budget_engine(engine, model, [&] { ++refusals; });
  const auto first = limited->compile(model);
  const auto second = limited->checked()->compile(model);
  std::string refused;
  constexpr int most = 1000;
  for (int i = 0; i < most && refused.empty(); ++i) {
    refused = error_of([&] { run(*(i % 2 == 0 ? first : second), 1 << 22); });
  }
  EXPECT_THAT(refused, HasSubstr("a file of this size may take 10 s"));
  EXPECT_GT(engine.counts.runs, 10);
  EXPECT_EQ(refusals, 1);
}

TEST(BudgetEngine, LargeFilesMayTakeMore) {
  const CountingEngine engine;
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n")}}, weight("w", {1 << 24})},
                          "a = Add(w, w)\ny = Relu(x)", {"y"});
  const auto compiled = make_budget_engine(engine, model)->compile(model);
  EXPECT_THAT(refusal_of(*compiled, {{"x", {1 << 27}}}), HasSubstr("may take 768 MiB"));
}

}  // namespace
}  // namespace graft::runtime
