// Tests setting and reading attributes by name.
#include "graft/operator/attribute.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "graft/operator/input_order.hpp"
#include "graft/operator/registry.hpp"

namespace graft {
namespace {

using testing::HasSubstr;

std::unique_ptr<Operator> make(std::string_view name) { return find_operator(name)->create(); }

TEST(Registry, EveryOperatorIsFoundByItsName) {
  for (const OperatorType* type : operators()) EXPECT_EQ(find_operator(type->name), type);
  EXPECT_EQ(find_operator("NoSuchOperator"), nullptr);
}

TEST(Registry, EveryDefinitionIsComplete) {
  for (const OperatorType* type : operators()) {
    SCOPED_TRACE(type->name);
    EXPECT_FALSE(type->doc.empty());
    EXPECT_FALSE(type->source.empty());
    EXPECT_FALSE(type->why_plugin.empty());
    EXPECT_GE(type->input_count(), 1U);
    EXPECT_GE(type->output_count(), 1U);
    for (std::size_t i = 0; i < type->ports.size(); ++i)
      EXPECT_EQ(type->ports[i].is_output(), i >= type->input_count());
    for (const TypeRow& row : type->type_rows) EXPECT_EQ(row.count, type->ports.size());
    for (const DropIn& drop_in : type->drop_ins) {
      for (const DropInField& field : drop_in.fields) {
        const bool is_translated = field.attribute.empty() && drop_in.translate != nullptr && !field.doc.empty();
        EXPECT_TRUE(is_translated || type->find_attribute(field.attribute) != nullptr) << field.name;
      }
      InputOrder order;
      EXPECT_EQ(InputOrder::make(*type, drop_in.inputs, order).message(), "") << drop_in.plugin_name;
    }
  }
}

TEST(Attributes, DefaultsComeBack) {
  for (const OperatorType* type : operators()) {
    for (const AttributeInfo& info : type->attributes) {
      EXPECT_EQ(type->create()->get(info.name), info.default_value) << type->name << "." << info.name;
      EXPECT_TRUE(type->create()->set(info.name, info.default_value).ok()) << type->name << "." << info.name;
    }
  }
}

TEST(Attributes, ASetValueComesBackAndCloneCarriesIt) {
  auto op = make("L2Normalize");
  ASSERT_TRUE(op->set("axes", std::vector<std::int64_t>{2, -1}).ok());
  ASSERT_TRUE(op->set("epsilon_mode", std::string("add")).ok());
  const auto copy = op->clone();
  ASSERT_TRUE(op->set("epsilon_mode", std::string("norm")).ok());
  EXPECT_EQ(copy->get("axes"), AttributeValue(std::vector<std::int64_t>{2, -1}));
  EXPECT_EQ(copy->get("epsilon_mode"), AttributeValue(std::string("add")));
  EXPECT_EQ(op->get("no_such_attribute"), std::nullopt);
}

TEST(Attributes, WrongOnesAreRefusedByName) {
  auto op = make("L2Normalize");
  const auto message = [&](std::string_view name, const AttributeValue& value) {
    const Status status = op->set(name, value);
    EXPECT_FALSE(status.ok());
    return status.message();
  };
  EXPECT_THAT(message("slope", 1.0F), HasSubstr("no attribute `slope`; its attributes are axes, epsilon"));
  EXPECT_THAT(message("epsilon", std::int64_t{1}), HasSubstr("`epsilon` has type int; it must have type float"));
  EXPECT_THAT(message("epsilon", -0.5F), HasSubstr("`epsilon` is -0.5; it must be at least 0"));
  EXPECT_THAT(message("epsilon", std::numeric_limits<float>::quiet_NaN()), HasSubstr("`epsilon` is nan"));
  EXPECT_THAT(message("epsilon", std::numeric_limits<float>::infinity()), HasSubstr("finite"));
  EXPECT_THAT(message("epsilon_mode", std::string("min")), HasSubstr("is \"min\"; it must be one of max, norm, add"));
  EXPECT_THAT(message("axes", std::vector<std::int64_t>{}), HasSubstr("`axes`"));
  EXPECT_EQ(op->get("epsilon"), AttributeValue(1e-12F)) << "a refused value leaves the old one";
}

TEST(TypeRows, OutputTypesFollowTheInputs) {
  const OperatorType& type = *find_operator("LeakyReLU");
  const DType known[] = {DType::bf16};
  const DType unknown[] = {DType::i64};
  EXPECT_EQ(type.output_dtypes(known), std::vector{DType::bf16});
  EXPECT_EQ(type.output_dtypes(unknown), std::nullopt);
  EXPECT_EQ(type.output_dtypes({}), std::nullopt);
}

TEST(Check, RefusesWrongTypesShapesAndCounts) {
  const auto op = make("L2Normalize");
  const auto check = [&](std::vector<TensorDesc> inputs, std::vector<TensorDesc> outputs) {
    return op->check({inputs, outputs});
  };
  const TensorDesc x{DType::f32, Layout::linear, {2, 3, 4, 5}};
  EXPECT_TRUE(check({x}, {x}).ok());
  EXPECT_THAT(check({x, x}, {x}).message(), HasSubstr("takes 1 inputs and 1 outputs, found 2 and 1"));
  EXPECT_THAT(check({x}, {{DType::f16, Layout::linear, {2, 3, 4, 5}}}).message(), HasSubstr("does not take f32"));
  EXPECT_THAT(check({x}, {{DType::f32, Layout::linear, {2, 3, 4}}}).message(), HasSubstr("has shape 2x3x4"));
  constexpr std::int64_t large = std::int64_t{1} << 31;
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{2}}) {
    const TensorDesc huge{DType::f32, Layout::linear, {batch, large, large, large}};
    EXPECT_THAT(check({huge}, {huge}).message(), HasSubstr("more elements than any device can hold"));
  }
  const TensorDesc vector{DType::f32, Layout::linear, {7}};
  EXPECT_THAT(check({vector}, {vector}).message(),
              HasSubstr("contains 1; each axis must be between -1 and 0 for rank 1"));
  const TensorDesc flat{DType::i8, Layout::chw32, {2, 3, 4}};
  EXPECT_FALSE(check({flat}, {flat}).ok()) << "channel-vector layouts are for four dimensions";
}

}  // namespace
}  // namespace graft
