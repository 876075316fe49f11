// Tests the comparison of whole models: pairing, worst case, problems.
#include "verify/compare/verify_models.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/text_model.hpp"
#include "verify/localize/layers.hpp"

namespace graft::verify::verify_models_test {
namespace {

using runtime::default_engine;

using test::text_model;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

const Dim batch = Dim::symbol("batch");

onnx::Model with(const std::string& nodes, const std::vector<std::string>& outputs) {
  return text_model({{"x", onnx::ElementType::f32, {batch, 4}}}, nodes, outputs);
}

TEST(VerifyModels, PairsByNameAndFindsNoDifference) {
  std::size_t calls = 0;
  VerifyOptions options;
  options.progress = [&](const std::string& /*text*/, std::size_t done, std::size_t total) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, 3U);
  };
  const VerifyReport report = verify_models(runtime::default_engine(), with("a = Neg(x)\nb = Exp(x)", {"a", "b"}),
                                            with("b = Exp(x)\na = Neg(x)", {"b", "a"}), options);
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.runs, 3U);
  EXPECT_EQ(calls, 3U);
  EXPECT_THAT(report.inputs, ElementsAre("x: f32[2, 4]"));
  ASSERT_EQ(report.outputs.size(), 2U);
  EXPECT_EQ(report.outputs[0].reference.name, "a");
  EXPECT_EQ(report.outputs[0].candidate.name, "a");
  EXPECT_EQ(report.outputs[0].reference.type, "f32[2, 4]");
}

/// Returns everything that a report has about its outputs, with all bits of the numbers.
std::string text_of(const VerifyReport& report) {
  std::string text = fmt::format("{} runs, {}\n", report.runs, fmt::join(report.inputs, ", "));
  for (const ComparedOutput& output : report.outputs) {
    const Difference& worst = output.worst;
    text +=
        fmt::format("{} {}: {} failed, {} lost, worst {} {}, {} compared, tolerance {} {}, {}\n", output.reference.name,
                    output.reference.type, output.failed_runs, output.lost_runs, output.worst_run, output.is_worst_lost,
                    output.compared, output.tolerance.relative, output.tolerance.of_largest, output.full_note());
    text += fmt::format("  {} of {}, {} in noise, {} at {}, {}, cosine {}\n", worst.mismatched, worst.count,
                        worst.within_noise, worst.max_absolute, fmt::join(worst.max_absolute_at, ","), worst.excess,
                        worst.cosine.value_or(-2));
    text += fmt::format("  {} {} {} {} {} {}\n", output.figures.elements, output.figures.signal, output.figures.noise,
                        output.figures.largest_error, output.figures.same_top, output.figures.snr_db.value_or(-1));
    text +=
        fmt::format("  {}, {}\n", output.floor ? output.floor->text : "no floor", output.beyond_rounding.value_or(-1));
  }
  return text;
}

/// The floor of the first output is measured in some runs. The second output differs from run 5 on.
TEST(VerifyModels, PartsInAnyOrderGiveTheSameReport) {
  const std::string constants =
      "big = Constant<value=float(30000.0)>()\nless = Constant<value=float(29999.0)>()\n"
      "small = Constant<value=float(1.001)>()\n";
  const onnx::Model reference =
      with(constants + "m = Mul(x, big)\na = Sin(m)\nb = Relu(x)\nc = Neg(x)", {"a", "b", "c"});
  const onnx::Model candidate = with(constants +
                                         "n = Mul(x, less)\nm = Add(n, x)\na = Sin(m)\n"
                                         "e = Relu(x)\nb = Mul(e, small)\nc = Neg(x)",
                                     {"a", "b", "c"});
  VerifyOptions options;
  options.finds_beyond_rounding = true;
  for (int run = 0; run < 12; ++run) {
    std::vector<float> values;
    for (int i = 0; i < 8; ++i) {
      const float size = (run % 3 == 1 ? 1e-7F : 0.7F) * static_cast<float>(run * 8 + i + 1);
      values.push_back(run < 5 ? -size : size);
    }
    onnx::TensorData tensor;
    tensor.type = onnx::ElementType::f32;
    tensor.dims = {2, 4};
    tensor.bytes =
        onnx::Bytes(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
    runtime::TensorMap inputs;
    inputs.emplace("x", std::move(tensor));
    options.data.push_back(std::move(inputs));
  }
  const VerifyReport whole = verify_models(default_engine(), reference, candidate, options);
  ASSERT_EQ(whole.outputs[1].failed_runs, 7U);
  ASSERT_TRUE(whole.outputs[0].floor);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return compare_part(default_engine(), reference, candidate, {.begin = begin, .end = end}, options);
  };
  std::vector<std::string> parts{part(7, 12), part(0, 1), part(1, 7)};
  VerifyOptions spread = options;
  spread.parts = [&](SampleRange runs) {
    EXPECT_EQ(runs, (SampleRange{.begin = 0, .end = 12}));
    return [&parts, next = std::size_t{0}]() mutable {
      return next < parts.size() ? std::optional(parts[next++]) : std::nullopt;
    };
  };
  EXPECT_EQ(text_of(verify_models(default_engine(), reference, candidate, spread)), text_of(whole));
  parts.pop_back();
  EXPECT_THAT([&] { (void)verify_models(default_engine(), reference, candidate, spread); },
              ThrowsMessage<Error>(HasSubstr("no part of the comparison has sample 1")));
}

TEST(VerifyModels, ScoresBesideBoxesAreComparedByThemselves) {
  const auto detector = [](const std::string& factor) {
    return text_model({{"x", onnx::ElementType::f32, {1, 4, 20}}},
                      "pixels = Constant<value=float(640.0)>()\nboxes = Mul(x, pixels)\ns = Sigmoid(x)\n"
                      "f = Constant<value=float(" +
                          factor + ")>()\nscores = Mul(s, f)\ny = Concat<axis=1>(boxes, scores)",
                      {"y"});
  };
  EXPECT_TRUE(verify_models(runtime::default_engine(), detector("0.01"), detector("0.01")).equal());
  const VerifyReport report = verify_models(runtime::default_engine(), detector("0.01"), detector("0.0101"));
  ASSERT_EQ(report.outputs.size(), 1U);
  EXPECT_FALSE(report.equal());
  EXPECT_THAT(report.outputs[0].worst.first_index, ElementsAre(0, 4, 0));
}

TEST(VerifyModels, AWholeStepOfEveryElementIsADifference) {
  const auto rounded = [](const std::string& sum, const std::string& zero_point) {
    return text_model(
        {{"x", onnx::ElementType::f32, {2, 64}}},
        "k = Constant<value=float(0.0125)>()\nthird = Constant<value=float(0.333333)>()\nh = Mul(x, third)\n" + sum +
            "\nscale = Constant<value=float(0.05)>()\nzero = Constant<value=uint8(" + zero_point +
            ")>()\ny = QuantizeLinear(t, scale, zero)",
        {"y"});
  };
  const std::string sum = "s = Add(x, h)\nt = Add(s, k)";
  const onnx::Model reference = rounded(sum, "128");
  const auto verdict_of = [&](const onnx::Model& candidate) {
    return verify_models(runtime::default_engine(), reference, candidate).verdict();
  };
  EXPECT_EQ(verdict_of(rounded("s = Add(h, k)\nt = Add(x, s)", "128")), Verdict::same);
  EXPECT_EQ(verdict_of(rounded(sum, "129")), Verdict::different);
  EXPECT_EQ(verdict_of(rounded(
                "scaled = Constant<value=float(0.05)>()\nr = Add(x, h)\ns = Add(r, scaled)\nt = Add(s, k)", "128")),
            Verdict::different);
}

TEST(VerifyModels, PairsByOrderWhereNamesDiffer) {
  const VerifyReport report = verify_models(runtime::default_engine(), with("a = Neg(x)\nb = Exp(x)", {"a", "b"}),
                                            with("c = Neg(x)\nd = Exp(x)", {"c", "d"}));
  EXPECT_TRUE(report.equal());
  EXPECT_EQ(report.outputs[1].candidate.name, "d");
  const onnx::Model other =
      text_model({{"input", onnx::ElementType::f32, {batch, 4}}}, "a = Neg(input)\nb = Exp(input)", {"a", "b"});
  EXPECT_TRUE(verify_models(runtime::default_engine(), with("a = Neg(x)\nb = Exp(x)", {"a", "b"}), other).equal());
}

TEST(VerifyModels, EightBitIntegersMayDifferByOneWhereTheyWereRounded) {
  const auto off_by_one = [](const std::string& to_int8) {
    return verify_models(
        runtime::default_engine(), with("floor = Floor(x)\n" + to_int8, {"y"}),
        with("one = Constant<value=float(1.0)>()\nlow = Floor(x)\nfloor = Add(low, one)\n" + to_int8, {"y"}));
  };
  const std::string quantize = "scale = Constant<value=float(1.0)>()\nzero = Constant<value=int8(0)>()\n";
  EXPECT_TRUE(off_by_one(quantize + "y = QuantizeLinear(floor, scale, zero)").equal());
  EXPECT_TRUE(off_by_one(quantize + "q = QuantizeLinear(floor, scale, zero)\ny = Transpose(q)").equal());
  const VerifyReport exact = off_by_one("y = Cast<to=int8>(floor)");
  EXPECT_TRUE(exact.problems.empty());
  EXPECT_FALSE(exact.equal());
}

TEST(VerifyModels, AQuantizedCandidateIsJudgedAsAWhole) {
  const auto rounded_to = [](const std::string& step, const VerifyOptions& options) {
    return verify_models(
        runtime::default_engine(), with("y = Neg(x)", {"y"}),
        with("scale = Constant<value=float(" + step + ")>()\nzero = Constant<value=int8(0)>()\n" +
                 "q = QuantizeLinear(x, scale, zero)\nd = DequantizeLinear(q, scale, zero)\n" + "y = Neg(d)",
             {"y"}),
        options);
  };
  const VerifyOptions narrow{.may_be_narrower = true};
  const VerifyReport fine = rounded_to("0.03", narrow);
  EXPECT_TRUE(fine.equal());
  const ComparedOutput& output = fine.outputs.at(0);
  EXPECT_EQ(output.tolerance.snr_db, 20);
  EXPECT_THAT(output.tolerance.why, HasSubstr("rounds to 8 bits"));
  EXPECT_GT(*output.figures.snr_db, 30);  // a signal near 1, an error of 0.03 / sqrt(12)
  EXPECT_LT(*output.figures.snr_db, 50);
  EXPECT_EQ(output.figures.rows, 0);  // y has no scores of a classifier
  EXPECT_FALSE(rounded_to("1.5", narrow).equal());
  EXPECT_FALSE(rounded_to("0.03", {.snr_db = 60, .may_be_narrower = true}).equal());
  EXPECT_TRUE(rounded_to("1.5", {.snr_db = 1, .may_be_narrower = true}).equal());
  EXPECT_FALSE(rounded_to("0.03", {.absolute = 0.001, .may_be_narrower = true}).equal());
}

TEST(VerifyModels, ANarrowCandidateHasTheSignalToNoiseRatioThatQuantizeRequires) {
  const auto in = [](const std::string& type, const std::string& factor) {
    return with("h = Cast<to=" + type + ">(x)\nf = Constant<value=float(" + factor + ")>()\nc = Cast<to=" + type +
                    ">(f)\nm = Mul(h, c)\ny = Cast<to=float>(m)",
                {"y"});
  };
  const auto verified = [&](const onnx::Model& candidate, const VerifyOptions& options) {
    return verify_models(runtime::default_engine(), with("y = Identity(x)", {"y"}), candidate, options);
  };
  const VerifyOptions narrow{.may_be_narrower = true};
  const VerifyReport fine = verified(in("float16", "1.0"), narrow);
  EXPECT_TRUE(fine.equal());
  EXPECT_EQ(fine.outputs.at(0).tolerance.least_snr_db, 40);
  // 1.25 % is within the tolerance of each element, and 38 dB.
  const VerifyReport off = verified(in("float16", "1.0125"), narrow);
  EXPECT_FALSE(off.equal());
  EXPECT_EQ(off.outputs.at(0).worst.missed_snr_db, 40);
  EXPECT_TRUE(verified(in("float16", "1.0125"), {.snr_db = 35, .may_be_narrower = true}).equal());
  EXPECT_TRUE(verified(in("bfloat16", "1.03125"), narrow).equal());
  const VerifyReport coarse = verified(in("bfloat16", "1.0625"), narrow);  // 24 dB
  EXPECT_FALSE(coarse.equal());
  EXPECT_EQ(coarse.outputs.at(0).worst.missed_snr_db, 25);
}

TEST(VerifyModels, ReportsTheOutputThatDiffers) {
  const VerifyReport report =
      verify_models(runtime::default_engine(), with("a = Neg(x)\nb = LeakyRelu<alpha=0.1>(x)", {"a", "b"}),
                    with("a = Neg(x)\nb = LeakyRelu<alpha=0.11>(x)", {"a", "b"}));
  EXPECT_FALSE(report.equal());
  EXPECT_TRUE(report.outputs[0].equal());
  EXPECT_FALSE(report.outputs[1].equal());
  EXPECT_EQ(report.outputs[1].failed_runs, 3U);
  EXPECT_NEAR(report.outputs[1].worst.max_relative, 0.1, 1e-4);
  VerifyOptions generous;
  generous.relative = 0.2;
  EXPECT_TRUE(verify_models(runtime::default_engine(), with("a = LeakyRelu<alpha=0.1>(x)", {"a"}),
                            with("a = LeakyRelu<alpha=0.11>(x)", {"a"}), generous)
                  .equal());
}

TEST(VerifyModels, UsesDataThatItIsGiven) {
  VerifyOptions options;
  options.data = {{{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {1, 4}, {1, 2, 3, 4})}},
                  {{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {1, 4}, {1, 2, -3, 4})}}};
  const onnx::Model reference = with("a = Relu(x)", {"a"});
  const onnx::Model candidate = with("a = Identity(x)", {"a"});
  const VerifyReport report = verify_models(runtime::default_engine(), reference, candidate, options);
  EXPECT_EQ(report.runs, 2U);
  EXPECT_EQ(report.outputs[0].failed_runs, 1U);
  EXPECT_EQ(report.outputs[0].worst_run, 1U);
  EXPECT_THAT(report.outputs[0].worst.first_index, ElementsAre(0, 2));
  options.data.pop_back();
  EXPECT_TRUE(verify_models(runtime::default_engine(), reference, candidate, options).equal());
  options.data[0]["z"] = options.data[0]["x"];
  EXPECT_THAT([&] { (void)verify_models(runtime::default_engine(), reference, candidate, options); },
              testing::ThrowsMessage<Error>(HasSubstr("no input 'z'")));
}

TEST(VerifyModels, SaysWhatOneModelLacks) {
  const VerifyReport report =
      verify_models(runtime::default_engine(), with("a = Neg(x)\nb = Exp(x)", {"a", "b"}), with("a = Neg(x)", {"a"}));
  EXPECT_FALSE(report.equal());
  EXPECT_THAT(report.problems, ElementsAre("the candidate has no output 'b'"));
  EXPECT_EQ(report.outputs.size(), 1U);
  EXPECT_TRUE(report.outputs[0].equal()) << "what both have is compared all the same";
}

TEST(VerifyModels, SaysThatInputsDiffer) {
  const onnx::Model half = text_model({{"x", onnx::ElementType::f16, {batch, 4}}}, "a = Neg(x)", {"a"});
  const VerifyReport report = verify_models(runtime::default_engine(), with("a = Neg(x)", {"a"}), half);
  EXPECT_FALSE(report.equal());
  EXPECT_EQ(report.runs, 0U);
  EXPECT_THAT(report.problems,
              ElementsAre("input 'x' is f32[batch, 4] in the reference and f16[batch, 4] in the candidate"));
}

TEST(VerifyModels, SaysThatTypesAndShapesOfOutputsDiffer) {
  const VerifyReport report = verify_models(runtime::default_engine(), with("a = Neg(x)\nb = Neg(x)", {"a", "b"}),
                                            with("n = Neg(x)\na = Cast<to=float16>(n)\nb = Transpose(n)", {"a", "b"}));
  EXPECT_FALSE(report.equal());
  EXPECT_EQ(difference_text(report.outputs[0].worst),
            "element types differ: f32 in the reference, f16 in the candidate");
  EXPECT_EQ(difference_text(report.outputs[1].worst),
            "dimensions differ: [2, 4] in the reference, [4, 2] in the candidate");
  EXPECT_EQ(report.outputs[1].candidate.type, "f32[4, 2]");
}

TEST(VerifyModels, FindsASizeThatTheModelRunsWith) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::f32, {batch, 1, Dim::symbol("h"), Dim::symbol("w")}}},
                                       "a = MaxPool<kernel_shape=[40, 40]>(x)", {"a"});
  const VerifyReport report = verify_models(runtime::default_engine(), model, model);
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.inputs, ElementsAre("x: f32[2, 1, 64, 64]"));
}

/// Exporters that trace with a batch of 1 write this shape.
TEST(VerifyModels, FindsABatchThatTheModelHoldsInside) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::f32, {batch, 8, 8}}},
                                       "s = Constant<value_ints=[1, 64]>()\ny = Reshape(x, s)", {"y"});
  const VerifyReport report = verify_models(runtime::default_engine(), model, model);
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.inputs, ElementsAre("x: f32[1, 8, 8]"));
  EXPECT_THAT(report.why_sizes, HasSubstr("a first dimension of 1 instead of 2"));
  EXPECT_THAT(report.why_sizes, HasSubstr("(Reshape)"));
  EXPECT_EQ(compare_layers(runtime::default_engine(), model, model).why_sizes, report.why_sizes);
}

/// The length is in a shape that is concatenated from the batch and constants.
TEST(VerifyModels, FindsALengthThatTheModelHoldsInside) {
  const onnx::Model model = text_model({{"x", onnx::ElementType::f32, {batch, Dim::symbol("s"), 4}}},
                                       "zero = Constant<value_ints=[0]>()\nrest = Constant<value_ints=[9, 4]>()\n"
                                       "s = Concat<axis=0>(zero, rest)\nwhole = Reshape(x, s)\ny = Relu(whole)",
                                       {"y"});
  const VerifyReport report = verify_models(runtime::default_engine(), model, model);
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.inputs, ElementsAre("x: f32[2, 9, 4]"));
  EXPECT_THAT(report.why_sizes, HasSubstr("other dynamic sizes of 9 instead of 16"));
}

/// The constant is a table like an embedding of positions.
TEST(VerifyModels, FindsALengthThatAConstantHas) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, {batch, Dim::symbol("s"), 2}}}, "a = Relu(x)", {"a"});
  onnx::Graph& graph = model.graph();
  onnx::Value* table = graph.add_constant(
      "table", onnx::TensorData::from_numbers(onnx::ElementType::f32, {1, 3, 2}, std::vector<double>(6, 1)));
  onnx::Value* sum = graph.add_node("Add", {graph.find_local("a"), table}, {"y"})->output();
  sum->type = onnx::ElementType::f32;
  graph.add_output(*sum);
  const VerifyReport report = verify_models(runtime::default_engine(), model, model);
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.inputs, ElementsAre("x: f32[2, 3, 2]"));
  EXPECT_THAT(report.why_sizes, HasSubstr("(Add) has a constant of that size"));
}

/// A decoder's mask covers the cached and the new tokens.
TEST(VerifyModels, FindsAMaskThatIsLongerThanThePast) {
  for (const bool one_new : {true, false}) {
    const onnx::Model model =
        text_model({{"x", onnx::ElementType::f32, {batch, one_new ? Dim(1) : Dim::symbol("S"), 4}},
                    {"past", onnx::ElementType::f32, {batch, Dim::symbol("P"), 4}},
                    {"mask", onnx::ElementType::f32, {batch, Dim::symbol("K")}}},
                   "two = Constant<value_ints=[2]>()\nall = Concat<axis=1>(past, x)\nsum = ReduceSum<keepdims=0>(all, "
                   "two)\ny = Add(sum, mask)",
                   {"y"});
    const VerifyReport report = verify_models(runtime::default_engine(), model, model);
    EXPECT_TRUE(report.equal());
    EXPECT_THAT(report.inputs, testing::Contains(one_new ? "mask: f32[2, 17]" : "mask: f32[2, 32]"));
    EXPECT_THAT(report.why_sizes, HasSubstr(fmt::format("runs if the size 'K' is {} and the other dynamic sizes are 16",
                                                        one_new ? 17 : 32)));
  }
}

/// The size is that of another input, and no internal shape shows it.
TEST(VerifyModels, SaysWhatToGiveWhereNoSizeWorks) {
  const onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, {1, Dim::symbol("s")}}, {"table", onnx::ElementType::f32, {1, 37}}},
                 "y = Add(x, table)", {"y"});
  EXPECT_THAT([&] { (void)verify_models(runtime::default_engine(), model, model); },
              ThrowsMessage<Error>(HasSubstr("VerifyOptions::shapes x:1x8: 'x' is declared")));
}

/// An f16 candidate computes scores with fewer digits: it may choose a score that is nearly as large as the largest.
TEST(VerifyModels, AnIndexFromF16IsJudgedByTheScores) {
  const auto index = [](const char* scores, const char* type) {
    return text_model({{"x", onnx::ElementType::f32, {batch, 4}}},
                      fmt::format("o = Constant<value_floats=[{}]>()\nz = Constant<value=float(0.0)>()\n"
                                  "n = Mul(x, z)\ns = Add(n, o)\nt = Cast<to={}>(s)\nu = Cast<to=1>(t)\n"
                                  "i = ArgMax<axis=-1>(u)\ny = Cast<to=6>(i)",
                                  scores, type),
                      {"y"});
  };
  const VerifyOptions narrow{.may_be_narrower = true};
  const onnx::Model reference = index("1.0, 9.9999, 10.0, 8.0", "1");
  const VerifyReport tied =
      verify_models(runtime::default_engine(), reference, index("1.0, 10.0, 10.0, 8.0", "10"), narrow);
  EXPECT_TRUE(tied.equal()) << tied.outputs[0].note;
  EXPECT_EQ(tied.outputs[0].worst.within_noise, 2);
  EXPECT_THAT(tied.outputs[0].note, HasSubstr("0.001 % of the largest"));
  // A score that differs from the largest by a tenth does not tie in f16; in f32 only equal scores tie.
  const VerifyReport wrong = verify_models(runtime::default_engine(), index("1.0, 9.0, 10.0, 8.0", "1"),
                                           index("1.0, 11.0, 10.0, 8.0", "10"), narrow);
  EXPECT_FALSE(wrong.equal());
  EXPECT_EQ(wrong.outputs[0].worst.mismatched, 2);
  EXPECT_THAT(wrong.outputs[0].note, HasSubstr("10 % of the largest"));
  EXPECT_FALSE(verify_models(runtime::default_engine(), index("1.0, 9.9, 10.0, 8.0", "1"),
                             index("1.0, 10.1, 10.0, 8.0", "1"), narrow)
                   .equal());
}

/// The cumulative sums of a mask are positions in a table, as in OPT: a mask of 0 to 3 would index beyond the table.
TEST(VerifyModels, FindsIntegersThatTheModelRunsWith) {
  const onnx::Model model =
      text_model({{"mask", onnx::ElementType::i64, {batch, 12}}, {"table", onnx::ElementType::f32, {13, 4}}},
                 "axis = Constant<value_int=1>()\nsums = CumSum(mask, axis)\nplaces = Mul(sums, mask)\n"
                 "y = Gather(table, places)",
                 {"y"});
  const VerifyReport report = verify_models(runtime::default_engine(), model, model);
  EXPECT_TRUE(report.equal());
  ASSERT_TRUE(report.ranges.contains("mask"));
  EXPECT_EQ(report.ranges.at("mask").highest, 1);
  EXPECT_EQ(report.ranges.size(), 1U);
  const LayerReport layers = compare_layers(runtime::default_engine(), model, model);
  EXPECT_TRUE(layers.equal());
  EXPECT_TRUE(layers.ranges.contains("mask"));
  VerifyOptions given;
  given.ranges["mask"] = {.lowest = 0, .highest = 3, .why = ""};
  EXPECT_THAT([&] { (void)verify_models(runtime::default_engine(), model, model, given); },
              ThrowsMessage<Error>(HasSubstr("an index lies outside of the tensor")));
}

/// The type of an operator without a shape rule comes from ONNX's schema.
TEST(VerifyModels, ADifferenceInAWindowOfStftIsPinned) {
  const auto network = [](const std::string& window) {
    return test::text_model({{"x", onnx::ElementType::f32, {2, 32, 1}}},
                            "step = Constant<value=int64(4)>()\nwindow = Constant<value=float([" + window +
                                "])>()\nstft = STFT(x, step, window)\ns = Mul(stft, stft)\ny = Neg(s)",
                            {"y"});
  };
  const onnx::Model reference = network("0.1, 0.4, 0.8, 1.0, 1.0, 0.8, 0.4, 0.1");
  const onnx::Model candidate = network("0.101, 0.404, 0.808, 1.01, 1.01, 0.808, 0.404, 0.101");
  EXPECT_EQ(verify_models(runtime::default_engine(), reference, candidate).verdict(), Verdict::different);
  EXPECT_FALSE(compare_layers(runtime::default_engine(), reference, candidate).equal());
  EXPECT_EQ(verify_models(runtime::default_engine(), reference, reference).verdict(), Verdict::same);
}

TEST(VerifyModels, InputsThatNoNodeReadsAreGivenAndLeftAlone) {
  const onnx::Model model = test::text_model(
      {{"x", onnx::ElementType::f32, {1, 4}}, {"unused", onnx::ElementType::f32, {1, 4}}}, "y = Dropout(x)", {"y"});
  EXPECT_EQ(verify_models(runtime::default_engine(), model, model).verdict(), Verdict::same);
}

TEST(VerifyModels, IndicesThatAConstantIsTakenFromGetARangeOrANextStep) {
  const auto network = [](const std::string& first) {
    return test::text_model({{"i", onnx::ElementType::i64, {4}}},
                            "first = Constant<value=int64(" + first +
                                ")>()\ntable = Constant<value=float([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])>()\n"
                                "row = Sub(i, first)\ny = GatherElements(table, row)",
                            {"y"});
  };
  const onnx::Model near = network("12");
  EXPECT_EQ(verify_models(runtime::default_engine(), near, near).verdict(), Verdict::same);
  const onnx::Model far = network("123456");
  EXPECT_THAT([&] { (void)verify_models(runtime::default_engine(), far, far); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("The inputs were synthetic; provide real inputs with")));
}

}  // namespace
}  // namespace graft::verify::verify_models_test
