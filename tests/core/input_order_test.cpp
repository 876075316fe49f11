// Tests the map from a plugin's inputs to an operator's inputs.
#include "graft/operator/input_order.hpp"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "graft/operator/registry.hpp"

namespace graft {
namespace {

InputOrder parsed(std::string_view text) {
  InputOrder order;
  EXPECT_EQ(InputOrder::parse(*find_operator("DeformableConvolution"), text, order).message(), "");
  return order;
}

/// The order in NVIDIA's plugin; ONNX has x, weight, offset, bias, mask.
constexpr std::string_view of_nvidia = "x,offset,mask,weight,bias";

std::vector<int> arranged(const InputOrder& order, const std::vector<int>& given) {
  std::array<int, TypeRow::max_ports> storage{};
  const auto inputs = order.arrange<int>(given, -1, storage);
  return {inputs.begin(), inputs.end()};
}

TEST(InputOrder, BringsInputsIntoTheOperatorsOrder) {
  const InputOrder order = parsed(of_nvidia);
  EXPECT_EQ(order.least(), 4U);
  EXPECT_EQ(order.most(), 5U);
  EXPECT_EQ(arranged(order, {10, 20, 30, 40, 50}), (std::vector{10, 40, 20, 50, 30}));
  EXPECT_EQ(order.port_of(1), 2U);
  EXPECT_EQ(order.index_of(2, 5), 1U);
}

TEST(InputOrder, WhatIsLeftOutBeforeOthersHasAPlace) {
  EXPECT_EQ(arranged(parsed(of_nvidia), {10, 20, 30, 40}), (std::vector{10, 40, 20, -1, 30}));
  EXPECT_EQ(arranged(parsed("x,offset,weight"), {10, 20, 30}), (std::vector{10, 30, 20}));
}

TEST(InputOrder, WhatTheOperatorDoesNotNeedIsDropped) {
  const InputOrder order = parsed("x,,offset,weight,");
  EXPECT_EQ(order.port_of(1), std::nullopt);
  EXPECT_EQ(order.least(), 4U);
  EXPECT_EQ(arranged(order, {10, 20, 30, 40, 50}), (std::vector{10, 40, 30}));
}

TEST(InputOrder, TheOperatorsOwnChangesNothing) {
  const InputOrder order = parsed("");
  EXPECT_TRUE(order.is_own());
  EXPECT_EQ(arranged(order, {10, 20, 30}), (std::vector{10, 20, 30}));
  EXPECT_EQ(order.to_string(*find_operator("DeformableConvolution")), "");
}

/// A fallback to the operator's own order would swap inputs and compute wrong results silently.
TEST(InputOrder, OfADropInWithAWrongNameIsNone) {
  const OperatorType& type = *find_operator("DeformableConvolution");
  DropIn drop_in{.plugin_name = "P", .version = "1", .fields = {}, .doc = "", .inputs = {"x", "offset", "weight"}};
  EXPECT_EQ(InputOrder::of(type, &drop_in).to_string(type), "x,offset,weight");
  drop_in.inputs[1] = "offsets";
  EXPECT_THROW(static_cast<void>(InputOrder::of(type, &drop_in)), std::invalid_argument);
  EXPECT_TRUE(InputOrder::of(type, nullptr).is_own());
}

TEST(InputOrder, ItsTextIsReadBack) {
  const OperatorType& type = *find_operator("DeformableConvolution");
  for (const std::string_view text : {of_nvidia, std::string_view("x,,offset,weight,")}) {
    EXPECT_EQ(parsed(text).to_string(type), text);
  }
  InputOrder order = parsed(of_nvidia);
  EXPECT_NE(InputOrder::parse(type, "x,offset,mask,weight,bias,bias", order).message(), "");
  EXPECT_EQ(order.to_string(type), of_nvidia) << "a text that is refused changes nothing";
}

}  // namespace
}  // namespace graft
