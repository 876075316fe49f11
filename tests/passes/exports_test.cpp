// What exporters write fuses into exactly what tests/golden/exports/manifest.json says, and computes what it did.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/onnx_io.hpp"
#include "import/read_model.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"
#include "tests/support/folders.hpp"

namespace graft {
namespace {

using runtime::default_engine;

const std::filesystem::path folder = golden_folder() / "exports";

const nlohmann::json& manifest() {
  static const nlohmann::json parsed = [] {
    std::ifstream file(folder / "manifest.json");
    return nlohmann::json::parse(file);
  }();
  return parsed;
}

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

/// The pass that makes an operator.
std::string pass_of(const std::string& op) {
  static const std::map<std::string, std::string> all = {{"LeakyReLU", "fuse_leaky_relu"},
                                                         {"L2Normalize", "fuse_l2_normalize"},
                                                         {"Normalize", "fuse_normalize"},
                                                         {"InstanceNorm", "fuse_instance_norm"},
                                                         {"Padding", "fuse_padding"},
                                                         {"Upsampling", "fuse_upsampling"},
                                                         {"SpatialPyramidPooling", "fuse_spatial_pyramid_pooling"}};
  return all.at(op);
}

/// An activation may become part of an InstanceNorm, which is one rewrite more.
std::size_t fusions_in(const ConvertReport& report) {
  std::size_t count = 0;
  for (const Rewrite& rewrite : report.rewrites) count += rewrite.pass.starts_with("fuse_") ? 1 : 0;
  return count;
}

/// The files whose names begin so.
void expect_fusions(const std::string& exporter, std::size_t least) {
  std::size_t files = 0;
  for (const auto& entry : manifest().at("exports")) {
    const auto name = entry.at("file").get<std::string>();
    if (!name.starts_with(exporter)) continue;
    SCOPED_TRACE(name + ": " + entry.at("expression").get<std::string>());
    ++files;
    const Model original = read_model(folder / name);
    Model model = original.clone();
    const ConvertReport report = convert(default_engine(), model);
    model.graph().check();

    const auto wanted = entry.at("fusions").get<std::size_t>();
    const auto kind = entry.at("operator").get<std::string>();
    EXPECT_EQ(fusions_in(report), wanted + entry.value("parts", std::size_t{0}));
    EXPECT_GE(report.count(pass_of(kind)), wanted);
    for (const Rewrite& rewrite : report.undone) ADD_FAILURE() << rewrite.pass << ": " << rewrite.proof;

    const auto ops = operators_in(model);
    const auto native = entry.at("native").get<std::size_t>();
    if (kind == "LeakyReLU") {
      EXPECT_TRUE(ops.empty());  // TensorRT has LeakyRelu itself
      EXPECT_EQ(count_of(model, "LeakyRelu"), wanted + native);
      model.graph().for_each_node([&](const Node& node) {
        if (!node.is("LeakyRelu")) return;
        EXPECT_NEAR(node.float_or("alpha", 0.01F), entry.at("attributes").at("alpha").get<double>(), 1e-7);
      });
    } else if (entry.contains("lowered")) {
      EXPECT_TRUE(ops.empty());
      EXPECT_EQ(count_of(model, entry.at("lowered").get<std::string>()), wanted);
    } else {
      ASSERT_EQ(ops.size(), wanted);
      EXPECT_EQ(count_of(model, "LeakyRelu"), native);
      if (wanted == 1) expect_attributes(*ops[0], entry.at("attributes"));
    }
    if (kind == "LeakyReLU" || kind == "L2Normalize") {
      EXPECT_EQ(report.choices.size(), wanted + native);
    }

    if (entry.contains("not_on_cpu_engine")) continue;  // ONNX Runtime runs it, in onnxruntime_test.py
    const VerifyReport verified = verify_models(default_engine(), original, model);
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

/// Each operator, in each of its kinds, is found in the output of two exporters at least; but only tf2onnx says
/// tf_half_pixel_for_nn, which TensorRT refuses (half pixels in words that it takes are left to it).
TEST(Exports, EveryFusionIsFoundInWhatTwoExportersWrite) {
  struct Kind {
    std::string op;
    std::map<std::string, std::string> attributes;
    std::size_t least = 2;
  };
  const std::vector<Kind> kinds = {
      {"LeakyReLU", {}},
      {"L2Normalize", {{"epsilon_mode", "max"}}},
      {"L2Normalize", {{"epsilon_mode", "norm"}}},
      {"L2Normalize", {{"epsilon_mode", "add"}}},
      {"Normalize", {{"across_spatial", "0"}, {"channel_shared", "0"}}},
      {"Normalize", {{"across_spatial", "1"}}},
      {"Normalize", {{"channel_shared", "1"}}},
      {"InstanceNorm", {{"activation", "none"}}},
      {"InstanceNorm", {{"activation", "relu"}}},
      {"InstanceNorm", {{"activation", "leaky_relu"}}},
      {"Padding", {{"mode", "reflect"}}},
      {"Padding", {{"mode", "symmetric"}}},
      {"Padding", {{"mode", "edge"}}},
      {"Padding", {{"mode", "wrap"}}},
      {"Padding", {{"mode", "constant"}}},
      {"Upsampling", {{"mode", "nearest"}, {"coordinate_mode", "asymmetric"}}},
      {"Upsampling", {{"mode", "nearest"}, {"coordinate_mode", "half_pixel"}}, 1},
      {"Upsampling", {{"mode", "linear"}, {"coordinate_mode", "asymmetric"}}},
      {"Upsampling", {{"mode", "linear"}, {"coordinate_mode", "half_pixel"}}},
      {"SpatialPyramidPooling", {{"mode", "max"}, {"binning", "adaptive"}}},
      {"SpatialPyramidPooling", {{"mode", "max"}, {"binning", "window"}}},
      {"SpatialPyramidPooling", {{"mode", "max"}, {"binning", "caffe"}}},
      {"SpatialPyramidPooling", {{"mode", "average"}}},
  };
  for (const Kind& kind : kinds) {
    std::set<std::string> exporters;
    for (const auto& entry : manifest().at("exports")) {
      const bool fires = entry.at("operator") == kind.op && entry.at("fusions") != 0 && entry.at("required");
      const bool is_of_kind = std::all_of(kind.attributes.begin(), kind.attributes.end(), [&](const auto& attribute) {
        const auto& all = entry.at("attributes");
        if (!all.contains(attribute.first)) return false;
        const auto& value = all.at(attribute.first);
        return (value.is_string() ? value.template get<std::string>() : value.dump()) == attribute.second;
      });
      const auto file = entry.at("file").get<std::string>();
      if (fires && is_of_kind) exporters.insert(file.substr(0, file.find(file.starts_with("torch") ? "_opset" : "_")));
    }
    std::string text = kind.op;
    for (const auto& [name, value] : kind.attributes) text += " " + name + "=" + value;
    // Two versions of one exporter count as one.
    exporters.erase("torch2.15.0_dynamo");
    EXPECT_GE(exporters.size(), kind.least) << text;
  }
}

TEST(Exports, EveryFileIsInOneOfTheTests) {
  for (const auto& entry : manifest().at("exports")) {
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
    Model model = read_onnx(folder / name);
    const ConvertReport first = convert(default_engine(), model);
    const std::string once = serialize_onnx(model);
    Model again = parse_onnx(once, {}, name);
    const ConvertReport second = convert(default_engine(), again);
    EXPECT_TRUE(second.rewrites.empty()) << second.rewrites.front().pass << ": " << second.rewrites.front().replacement;
    EXPECT_TRUE(second.undone.empty());
    EXPECT_EQ(second.choices.size(), first.choices.size());
    EXPECT_EQ(serialize_onnx(again), once);
  }
}

TEST(Exports, IdenticalRegionsAreProvenOnce) {
  Model model = read_onnx(folder / "torch2.8.0_script_opset17_network.onnx");
  const ConvertReport report = convert(default_engine(), model);
  ASSERT_EQ(report.count("fuse_l2_normalize"), 3U);
  EXPECT_GE(report.proofs_reused, 1U);  // two of the three normalize [batch, 4]
}

TEST(Digits, OneNormalizationAndItsLeakyRelus) {
  const auto path = golden_folder().parent_path().parent_path() / "examples/digits/digits.onnx";
  const Model original = read_onnx(path);
  Model model = original.clone();
  const std::size_t leaky = count_of(original, "LeakyRelu");
  ASSERT_GE(leaky, 1U);
  const ConvertReport report = convert(default_engine(), model);
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
  const VerifyReport verified = verify_models(default_engine(), original, model);
  EXPECT_TRUE(verified.equal()) << first_difference(verified);
  VerifyOptions own;
  own.candidate_kernels = runtime::OperatorKernels::own;
  const VerifyReport by_kernels = verify_models(default_engine(), original, model, own);
  EXPECT_TRUE(by_kernels.equal()) << first_difference(by_kernels);
}

}  // namespace
}  // namespace graft
