// Tests synthetic inputs: shapes, ranges, reproducibility.
#include "verify/inputs/inputs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/text_model.hpp"
#include "verify/inputs/fitting_sizes.hpp"

namespace graft::verify::inputs_test {
namespace {

using test::text_model;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Dim batch = Dim::symbol("batch");

onnx::Model one_input(onnx::ElementType type, const Shape& shape) {
  return text_model({{"x", type, shape}}, "y = Identity(x)", {"y"});
}

TEST(Inputs, SymbolsGetSizes) {
  const onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, {batch, 3, Dim::symbol("h"), Dim::symbol("h") * Dim(2)}},
                  {"s", onnx::ElementType::f32, {1, batch}}},
                 "y = Identity(x)\nz = Identity(s)", {"y", "z"});
  runtime::TensorMap inputs = make_inputs(model);
  EXPECT_THAT(inputs.at("x").dims, ElementsAre(2, 3, 16, 32));
  EXPECT_THAT(inputs.at("s").dims, ElementsAre(1, 2));
  inputs = make_inputs(model, {.dims = {{"h", 5}}, .shapes = {}, .first_size = 7});
  EXPECT_THAT(inputs.at("x").dims, ElementsAre(7, 3, 5, 10));
  inputs = make_inputs(model, {.dims = {}, .shapes = {{"x", {4, 3, 6, 12}}}});
  EXPECT_THAT(inputs.at("x").dims, ElementsAre(4, 3, 6, 12));
  EXPECT_THAT(inputs.at("s").dims, ElementsAre(1, 4)) << "batch is one symbol";
  EXPECT_THAT(symbols_of_inputs(model), ElementsAre("batch", "h"));
}

TEST(Inputs, RefuseWhatContradictsTheModel) {
  const onnx::Model model = one_input(onnx::ElementType::f32, {batch, 3});
  EXPECT_THAT(
      [&] {
        (void)make_inputs(model, {.dims = {{"n", 5}}, .shapes = {}});
      },
      ThrowsMessage<Error>(HasSubstr("no input has a dimension 'n'; the named dimensions are batch")));
  EXPECT_THAT(
      [&] {
        (void)make_inputs(model, {.dims = {{"batch", -5}}, .shapes = {}});
      },
      ThrowsMessage<Error>(HasSubstr("-5")));
  EXPECT_THAT(
      [&] {
        (void)make_inputs(model, {.dims = {}, .shapes = {{"z", {1}}}});
      },
      ThrowsMessage<Error>(HasSubstr("no input 'z'")));
  EXPECT_THAT(
      [&] {
        (void)make_inputs(model, {.dims = {}, .shapes = {{"x", {1, 4}}}});
      },
      ThrowsMessage<Error>(HasSubstr("input 'x' cannot have the shape [1, 4]; the model declares [batch, 3]")));
  EXPECT_THAT(
      [&] {
        (void)make_inputs(model, {.dims = {}, .shapes = {{"x", {3}}}});
      },
      ThrowsMessage<Error>(HasSubstr("[3]")));
  EXPECT_THROW((void)make_inputs(one_input(onnx::ElementType::string, {2})), Error);
  onnx::Model unranked = one_input(onnx::ElementType::f32, {2});
  unranked.graph().find("x")->shape.reset();
  EXPECT_THAT([&] { (void)make_inputs(unranked); }, ThrowsMessage<Error>(HasSubstr("input 'x' has no shape")));
  EXPECT_THAT(make_inputs(unranked, {.dims = {}, .shapes = {{"x", {1, 4}}}}).at("x").dims, ElementsAre(1, 4));
}

/// A file of a hundred bytes may declare inputs of any size, also sizes whose product exceeds any integer type.
TEST(Inputs, RefuseSizesThatTakeTooMuchMemory) {
  const auto with_shape = [](const Shape& shape) {
    return text_model({{"a", onnx::ElementType::f32, {8}}, {"x", onnx::ElementType::f32, shape}}, "y = Neg(x)", {"y"});
  };
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  for (const Shape& shape : {Shape{1, huge}, Shape{huge, huge, huge}, Shape{most_synthetic_elements - 7}}) {
    EXPECT_THAT([&] { (void)make_inputs(with_shape(shape)); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("input 'x' would have ")));
  }
  EXPECT_EQ(make_inputs(with_shape({0, huge, huge})).at("x").element_count(), 0);
}

TEST(Inputs, AreNormallyDistributed) {
  const auto values = *make_inputs(one_input(onnx::ElementType::f32, {100000}), {.scale = 3}).at("x").numbers();
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double variance = 0;
  double within = 0;
  for (const double value : values) {
    variance += (value - mean) * (value - mean) / count;
    within += std::abs(value) < 3 ? 1 / count : 0;
  }
  EXPECT_NEAR(mean, 0, 3 * 5 / std::sqrt(count));
  EXPECT_NEAR(variance, 9, 9 * 5 * std::sqrt(2 / count));
  EXPECT_NEAR(within, 0.6827, 0.01);
}

TEST(Inputs, DependOnSeedAndNameAlone) {
  const onnx::Model both =
      text_model({{"a", onnx::ElementType::f32, {4}}, {"b", onnx::ElementType::f32, {4}}}, "y = Add(a, b)", {"y"});
  const onnx::Model turned =
      text_model({{"b", onnx::ElementType::f32, {4}}, {"a", onnx::ElementType::f32, {4}}}, "y = Add(a, b)", {"y"});
  EXPECT_TRUE(make_inputs(both, {.seed = 3}).at("a").same_as(make_inputs(turned, {.seed = 3}).at("a")));
  EXPECT_FALSE(make_inputs(both, {.seed = 3}).at("a").same_as(make_inputs(both, {.seed = 4}).at("a")));
  EXPECT_FALSE(make_inputs(both).at("a").same_as(make_inputs(both).at("b")));
}

TEST(Inputs, StayInTheRangeOfTheirType) {
  const auto range = [](onnx::ElementType type, const InputOptions& options) {
    const auto values = *make_inputs(one_input(type, {5000}), options).at("x").numbers();
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
    return std::pair(*lowest, *highest);
  };
  EXPECT_EQ(range(onnx::ElementType::i8, {}), std::pair(-128.0, 127.0));
  EXPECT_EQ(range(onnx::ElementType::u8, {}), std::pair(0.0, 255.0));
  EXPECT_EQ(range(onnx::ElementType::i64, {}), std::pair(0.0, 3.0));
  EXPECT_EQ(range(onnx::ElementType::boolean, {}), std::pair(0.0, 1.0));
  EXPECT_EQ(range(onnx::ElementType::f16, {.scale = 1e9}), std::pair(-65504.0, 65504.0));
  EXPECT_EQ(range(onnx::ElementType::f32, {.values = InputValues::zeros}), std::pair(0.0, 0.0));
  EXPECT_EQ(range(onnx::ElementType::f32, {.values = InputValues::ones}), std::pair(1.0, 1.0));
  EXPECT_LE(range(onnx::ElementType::f32, {.values = InputValues::negative}).second, 0);
  EXPECT_LT(range(onnx::ElementType::f32, {.values = InputValues::negative}).first, -3);
}

TEST(Inputs, LeaveOutThoseWithADefault) {
  onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, {2}}, {"w", onnx::ElementType::f32, {2}}}, "y = Mul(x, w)", {"y"});
  model.graph().set_initializer(*model.graph().find("w"), onnx::TensorData::from_floats({1, 2}));
  EXPECT_EQ(make_inputs(model).size(), 1U);
}

/// The second slice fits the weight for one start only. Neither the rank nor the sizes of the starts are in the model.
TEST(Inputs, AreFittedWithTheShapeThatTheCallerGave) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::f32, {8, 8}},
                                        {"n", onnx::ElementType::i64},
                                        {"to", onnx::TensorData::from_numbers(onnx::ElementType::i64, {2}, {8, 8})},
                                        test::weight("w", {4, 2})},
                                       "s = Slice(x, n, to)\ny = MatMul(s, w)", {"y"});
  const std::vector<FittingSizes> found = search_fitting_sizes(model, {.dims = {}, .shapes = {{"n", {2}}}});
  ASSERT_FALSE(found.empty());
  for (const FittingSizes& fitting : found) {
    const std::vector<double>& starts = fitting.numbers.at("n");
    ASSERT_EQ(starts.size(), 2U);
    EXPECT_EQ(starts[1], 4) << fitting.why;
  }
}

/// Shape inference visits the nodes of bodies too.
TEST(Inputs, AreNotFittedToAModelWithALargeBody) {
  const auto found_with = [](int nodes_in_body) {
    onnx::Model model = text_model({{"x", onnx::ElementType::f32, {8, 8}},
                                    {"n", onnx::ElementType::i64, {2}},
                                    {"c", onnx::ElementType::boolean, Shape()},
                                    {"to", onnx::TensorData::from_numbers(onnx::ElementType::i64, {2}, {8, 8})},
                                    test::weight("w", {4, 2})},
                                   "s = Slice(x, n, to)\ny = MatMul(s, w)\nv = If(c)", {"y", "v"});
    for (const char* branch : {"then_branch", "else_branch"}) {
      auto body = std::make_unique<onnx::Graph>(&model.graph());
      std::string nodes;
      for (int i = 0; i < nodes_in_body; ++i) nodes += fmt::format("{}{} = Constant<value_int=1>()\n", branch, i);
      parse_nodes(*body, nodes, {fmt::format("{}{}", branch, nodes_in_body - 1)}, nullptr);
      test::producer(model, "v").attributes[branch].data = std::move(body);
    }
    return search_fitting_sizes(model, {}).size();
  };
  EXPECT_GT(found_with(1), 0U);
  EXPECT_EQ(found_with(10001), 0U) << "not even one inference is worth its time";
}

}  // namespace
}  // namespace graft::verify::inputs_test
