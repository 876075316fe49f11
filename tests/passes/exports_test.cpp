// Tests that exported networks fuse into exactly the operators of tests/golden/exports/manifest.json and compute the
// same.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "import/read_model.hpp"
#include "onnx/onnx_io.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"
#include "tests/support/folders.hpp"

namespace graft::passes::exports_test {
namespace {

using runtime::default_engine;
using test::count_of;

const std::filesystem::path folder = golden_folder() / "exports";
const nlohmann::json manifest = nlohmann::json::parse(std::ifstream(folder / "manifest.json"));

void expect_attributes(const Operator& op, const nlohmann::json& attributes) {
  for (const auto& [name, expected] : attributes.items()) {
    const AttributeValue value = op.get(name).value();
    if (const auto* number = std::get_if<float>(&value)) {
      EXPECT_NEAR(*number, expected.get<double>(), 1e-6 * expected.get<double>()) << name;
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      EXPECT_EQ(*text, expected.get<std::string>()) << name;
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      EXPECT_EQ(*integer, expected.get<std::int64_t>()) << name;
    } else if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
      EXPECT_EQ(*numbers, expected.get<std::vector<float>>()) << name;
    } else {
      EXPECT_EQ(std::get<std::vector<std::int64_t>>(value), expected.get<std::vector<std::int64_t>>()) << name;
    }
  }
}

/// Returns the pass that creates an operator.
std::string pass_of(const std::string& op) {
  for (const auto& entry : manifest.at("operators")) {
    if (entry.at("operator") == op) return entry.at("pass").get<std::string>();
  }
  throw std::out_of_range(op);
}

/// Compares those attributes of an ONNX node that have the names of attributes of the operator that it replaces.
void expect_same_attributes(const onnx::Node& native, const nlohmann::json& attributes) {
  for (const auto& [name, expected] : attributes.items()) {
    if (expected.is_number_float()) {
      EXPECT_NEAR(native.float_or(name, 0), expected.get<double>(), 1e-7) << name;
    } else if (expected.is_string()) {
      EXPECT_EQ(native.string_or(name, ""), expected.get<std::string>()) << name;
    }
  }
}

/// Returns the number of fusion rewrites; an operator that becomes part of another one counts as another rewrite.
std::size_t fusions_in(const RewriteReport& report) {
  std::size_t count = 0;
  for (const Rewrite& rewrite : report.rewrites) count += rewrite.pass.starts_with("fuse_") ? 1 : 0;
  return count;
}

/// Tests the files whose names begin with `exporter`.
void expect_fusions(const std::string& exporter, std::size_t least) {
  std::size_t files = 0;
  for (const auto& entry : manifest.at("exports")) {
    const auto name = entry.at("file").get<std::string>();
    if (!name.starts_with(exporter)) continue;
    SCOPED_TRACE(name + ": " + entry.at("expression").get<std::string>());
    ++files;
    const onnx::Model original = read_model(folder / name);
    onnx::Model model = original.clone();
    const RewriteReport report = convert(runtime::default_engine(), model);
    model.graph().check();

    const auto wanted = entry.at("fusions").get<std::size_t>();
    const auto kind = entry.at("operator").get<std::string>();
    EXPECT_EQ(fusions_in(report), wanted + entry.value("parts", std::size_t{0}));
    EXPECT_GE(report.count(pass_of(kind)), wanted);
    for (const Rewrite& rewrite : report.rejected) ADD_FAILURE() << rewrite.pass << ": " << rewrite.proof;

    const auto ops = operators_in(model);
    const auto native = entry.at("native").get<std::size_t>();
    if (entry.contains("lowered")) {  // TensorRT has a layer of its own
      const auto lowered = entry.at("lowered").get<std::string>();
      EXPECT_TRUE(ops.empty());
      EXPECT_EQ(count_of(model, lowered), wanted + native);
      model.graph().for_each_node([&](const onnx::Node& node) {
        if (node.is(lowered)) expect_same_attributes(node, entry.at("attributes"));
      });
    } else {
      ASSERT_EQ(ops.size(), wanted);
      EXPECT_EQ(count_of(model, "LeakyRelu"), native);
      if (wanted == 1) expect_attributes(*ops[0], entry.at("attributes"));
    }
    EXPECT_EQ(report.choices.size(), wanted + native);

    if (entry.contains("not_on_cpu_engine")) continue;  // ONNX Runtime runs it, in onnxruntime_test.py
    const verify::VerifyReport verified = verify::verify_models(runtime::default_engine(), original, model);
    EXPECT_TRUE(verified.equal()) << first_difference(verified);
  }
  EXPECT_GE(files, least);
}

TEST(Exports, TensorFlowAndKeras) { expect_fusions("tf2onnx", 45); }
TEST(Exports, TorchScript) { expect_fusions("torch2.8.0_script", 75); }
TEST(Exports, TorchDynamo) { expect_fusions("torch2.8.0_dynamo", 60); }
TEST(Exports, NewestTorchDynamo) { expect_fusions("torch2.15.0", 15); }

TEST(Exports, PaddlePaddle) { expect_fusions("paddle2onnx", 70); }
TEST(Exports, FrozenGraphsThatGraftReads) { expect_fusions("tensorflow", 40); }

/// Each kind of each operator is found in the output of at least two exporters, where more than one writes it.
TEST(Exports, EveryFusionIsFoundInWhatTwoExportersWrite) {
  std::size_t kinds = 0;
  for (const auto& described : manifest.at("operators")) {
    for (const auto& kind : described.at("kinds")) {
      ++kinds;
      const auto& attributes = kind.at("attributes");
      std::set<std::string> exporters;
      for (const auto& entry : manifest.at("exports")) {
        if (entry.at("operator") != described.at("operator") || entry.at("fusions") == 0 || !entry.at("required"))
          continue;
        const auto& all = entry.at("attributes");
        const bool is_of_kind = std::all_of(
            attributes.items().begin(), attributes.items().end(),
            [&](const auto& wanted) { return all.contains(wanted.key()) && all.at(wanted.key()) == wanted.value(); });
        const auto file = entry.at("file").get<std::string>();
        if (is_of_kind) exporters.insert(file.substr(0, file.find(file.starts_with("torch") ? "_opset" : "_")));
      }
      // Two versions of one exporter count as one.
      exporters.erase("torch2.15.0_dynamo");
      EXPECT_GE(exporters.size(), kind.value("exporters", std::size_t{2})) << described.at("operator") << kind;
    }
  }
  EXPECT_GE(kinds, 23U);
}

TEST(Exports, EveryFileIsInOneOfTheTests) {
  for (const auto& entry : manifest.at("exports")) {
    const auto name = entry.at("file").get<std::string>();
    EXPECT_TRUE(name.starts_with("tf2onnx") || name.starts_with("tensorflow") || name.starts_with("paddle2onnx") ||
                name.starts_with("torch2.8.0_script") || name.starts_with("torch2.8.0_dynamo") ||
                name.starts_with("torch2.15.0"))
        << name;
  }
}

TEST(Exports, ConvertingTwiceChangesNothing) {
  for (const std::string name :
       {"torch2.8.0_script_opset17_network.onnx", "torch2.8.0_dynamo_opset18_network.onnx",
        "tf2onnx1.17.0_opset13_network.onnx", "torch2.8.0_script_opset11_f_normalize.onnx",
        "torch2.8.0_script_opset17_style_block.onnx", "tf2onnx1.17.0_opset13_keras_network.onnx",
        "torch2.8.0_script_opset17_deconvolution_dynamic.onnx", "torch2.8.0_script_opset17_circular.onnx",
        "torch2.8.0_script_opset17_pyramid_caffe.onnx", "paddle2onnx2.0.1_reflect_any_size.onnx",
        "paddle2onnx2.0.1_circular.onnx", "paddle2onnx2.0.1_moments_var_any_size.onnx"}) {
    SCOPED_TRACE(name);
    onnx::Model model = onnx::read_onnx(folder / name);
    const RewriteReport first = convert(runtime::default_engine(), model);
    const std::string once = serialize_onnx(model);
    onnx::Model again = onnx::parse_onnx(once, {}, name);
    const RewriteReport second = convert(runtime::default_engine(), again);
    EXPECT_TRUE(second.rewrites.empty()) << second.rewrites.front().pass << ": " << second.rewrites.front().replacement;
    EXPECT_TRUE(second.rejected.empty());
    EXPECT_EQ(second.choices.size(), first.choices.size());
    EXPECT_EQ(serialize_onnx(again), once);
  }
}

/// Returns the nodes, their attributes and the constants, without declared types and shapes of inner values.
std::string nodes_of(onnx::Model model) {
  for (onnx::Value* value : model.graph().values()) {
    if (value->is_input || value->is_output() || value->initializer) continue;
    value->shape.reset();
    value->type.reset();
  }
  return serialize_onnx(model);
}

/// Without proofs, which this test does not cover.
TEST(Exports, ConvertingWhatWasConvertedMakesNoRewrite) {
  ConvertOptions options;
  options.prove = false;
  for (const auto& entry : manifest.at("exports")) {
    const auto name = entry.at("file").get<std::string>();
    SCOPED_TRACE(name);
    onnx::Model model = read_model(folder / name);
    convert(runtime::default_engine(), model, options);
    onnx::Model again = onnx::parse_onnx(serialize_onnx(model), {}, name);
    const std::string once = nodes_of(again.clone());
    const RewriteReport second = convert(runtime::default_engine(), again, options);
    EXPECT_TRUE(second.rewrites.empty()) << second.rewrites.front().pass << ": " << second.rewrites.front().replacement;
    EXPECT_EQ(nodes_of(again.clone()), once);
  }
}

TEST(Exports, IdenticalRegionsAreProvenOnce) {
  onnx::Model model = onnx::read_onnx(folder / "torch2.8.0_script_opset17_network.onnx");
  const RewriteReport report = convert(runtime::default_engine(), model);
  ASSERT_EQ(report.count("fuse_l2_normalize"), 3U);
  EXPECT_GE(report.proofs_reused, 1U);  // two of the three normalize [batch, 4]
}

TEST(Digits, OneNormalizationAndItsLeakyRelus) {
  const auto path = golden_folder().parent_path().parent_path() / "examples/digits/digits.onnx";
  const onnx::Model original = onnx::read_onnx(path);
  onnx::Model model = original.clone();
  const std::size_t leaky = count_of(original, "LeakyRelu");
  ASSERT_GE(leaky, 1U);
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(report.count("fuse_l2_normalize"), 1U);
  const auto ops = operators_in(model);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(ops[0]->type().name, "L2Normalize");
  EXPECT_EQ(count_of(model, "LeakyRelu"), leaky);
  ASSERT_EQ(report.choices.size(), leaky + 1);
  for (const OperatorChoice& choice : report.choices) {
    EXPECT_EQ(choice.kind, choice.op == "L2Normalize" ? OperatorChoice::Kind::plugin : OperatorChoice::Kind::native);
    EXPECT_FALSE(choice.reason.empty());
  }
  const verify::VerifyReport verified = verify::verify_models(runtime::default_engine(), original, model);
  EXPECT_TRUE(verified.equal()) << first_difference(verified);
  verify::VerifyOptions own;
  own.candidate_kernels = runtime::OperatorKernels::own;
  const verify::VerifyReport by_kernels = verify::verify_models(runtime::default_engine(), original, model, own);
  EXPECT_TRUE(by_kernels.equal()) << first_difference(by_kernels);
}

}  // namespace
}  // namespace graft::passes::exports_test
