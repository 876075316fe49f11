// Tests the functions on which the Python package is built: complete results, models from and to memory, and runs
// without copies.
#include "graft/toolkit/present.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/run.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

auto is_page() { return AllOf(StartsWith("<!"), HasSubstr("</html>"), HasSubstr("digits.onnx")); }

TEST(Present, ConvertTellsWhatItMadeOfWhichFile) {
  const ConvertReport result = convert(load(digits("digits.pb")), {.prove = false, .check = false});
  EXPECT_THAT(to_json(result), AllOf(HasSubstr("digits.pb"), HasSubstr(R"("format":"TensorFlow graph")"),
                                     HasSubstr(R"("rewrites":[{)"), HasSubstr(R"("output":"")")));
  EXPECT_THAT(to_page(result), AllOf(StartsWith("<!"), HasSubstr("digits.pb")));
}

TEST(Present, InspectTellsOfEveryNode) {
  const InspectReport result = inspect(load(digits("digits.onnx")), {.judge = Judge::rule});
  EXPECT_THAT(to_json(result), AllOf(HasSubstr(R"("schema":"graft.inspect")"), HasSubstr(R"("verdict":"native")")));
  EXPECT_THAT(to_page(result), is_page());
}

TEST(Present, VerifyNamesBothModels) {
  const Model model = load(digits("digits.onnx"));
  const VerifyResult outputs = verify(model, load(digits("digits.pb")), {.data = {}, .seeds = 1});
  EXPECT_THAT(to_json(outputs), AllOf(HasSubstr("digits.onnx"), HasSubstr("digits.pb"), HasSubstr("graft.verify")));
  EXPECT_THAT(to_page(outputs), is_page());
  const LayersResult layers = verify_layers(model, model, {.data = images(2)}, Precision::f16);
  EXPECT_THAT(to_json(layers), AllOf(HasSubstr("graft.verify.layers"), HasSubstr(R"("emulated":"f16")")));
  EXPECT_THAT(to_page(layers), is_page());
}

TEST(Present, QuantizeTellsOfBothWays) {
  const Model model = load(digits("digits.onnx"));
  const QuantizeReport types = quantize(model, {.precision = Precision::bf16});
  EXPECT_THAT(to_json(types), AllOf(HasSubstr(R"("precision":"bf16")"), HasSubstr(R"("data":"made up")")));
  EXPECT_THAT(to_page(types), is_page());
  const QuantizeReport int8 = quantize(model, {.precision = Precision::int8, .data = images(16)});
  EXPECT_THAT(to_json(int8), AllOf(HasSubstr(R"("precision":"int8")"), HasSubstr(R"("samples":16)")));
  EXPECT_THAT(to_page(int8), is_page());
}

TEST(Memory, WhatIsSerializedIsParsed) {
  const Model model = load(digits("digits.onnx"));
  const std::string bytes = model.serialize();
  EXPECT_EQ(parse(bytes).serialize(), bytes);
  EXPECT_EQ(parse(bytes, "mine").source(), "mine");
  EXPECT_EQ(*parse(bytes, "mine", {{"image", {4, 1, 8, 8}}}).inputs()[0].shape,
            (std::vector<std::int64_t>{4, 1, 8, 8}));
  EXPECT_THAT(message_of([] { static_cast<void>(parse("no model", "mine")); }), StartsWith("mine"));
}

TEST(Session, ViewsGiveWhatTensorsGive) {
  Session session(load(digits("digits.onnx")));
  const Tensor image = images(3).at("image");
  const Tensors copied = session.run({{"image", image}});
  Tensors seen;
  session.run(TensorViews{{"image", {.dtype = image.dtype, .shape = image.shape, .data = image.data}}},
              [&](const TensorViews& outputs) {
                for (const auto& [name, view] : outputs) {
                  seen.emplace(name, Tensor{view.dtype, view.shape, {view.data.begin(), view.data.end()}});
                }
              });
  ASSERT_EQ(seen.size(), copied.size());
  EXPECT_EQ(seen.at("logits").shape, copied.at("logits").shape);
  EXPECT_EQ(seen.at("logits").data, copied.at("logits").data);
  EXPECT_THAT(message_of([&] {
                session.run(TensorViews{{"image", {.dtype = TensorType::f32, .shape = {1, 1, 8, 8}, .data = {}}}},
                            [](const TensorViews&) {});
              }),
              HasSubstr("found 0 bytes of data"));
}

}  // namespace
}  // namespace graft::toolkit
