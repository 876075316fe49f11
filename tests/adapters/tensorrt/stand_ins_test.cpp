// Tests the library of stand-ins: names, fields and defaults are those of the other libraries, and the plugins are
// Graft's.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "adapters/tensorrt/convert.hpp"
#include "adapters/tensorrt/plugin_host.hpp"
#include "adapters/tensorrt/schema.hpp"
#include "core/plugin_form.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"

namespace graft::tensorrt {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::filesystem::path stand_ins() {
  return std::filesystem::path(std::getenv("GRAFT_PLUGIN_LIBRARY")).replace_filename("libgraft_stand_ins.so");
}

PluginLibrary& library() {
  static PluginLibrary loaded(stand_ins());
  return loaded;
}

std::string name_of(const nvinfer1::IPluginCreatorInterface& creator) {
  const auto& named = static_cast<const nvinfer1::IPluginCreatorV3One&>(creator);
  return std::string(named.getPluginName()) + " " + named.getPluginVersion();
}

std::filesystem::path onnx_names() { return stand_ins().replace_filename("libgraft_onnx.so"); }

/// Loads a library and returns the names and versions of its creators.
std::set<std::string> names_offered(const std::filesystem::path& file = stand_ins()) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  using GetCreators = nvinfer1::IPluginCreatorInterface* const* (*)(std::int32_t&);
  const auto get_creators = reinterpret_cast<GetCreators>(dlsym(handle, "getCreators"));
  std::int32_t count = 0;
  nvinfer1::IPluginCreatorInterface* const* list = get_creators(count);
  std::set<std::string> names;
  for (std::int32_t i = 0; i < count; ++i) names.insert(name_of(*list[i]));
  dlclose(handle);
  return names;
}

PluginLibrary& own_library() {
  static PluginLibrary own(std::getenv("GRAFT_PLUGIN_LIBRARY"));
  return own;
}

/// Takes the log of both libraries. TensorRT has a single logger, which the library that was loaded last receives.
std::vector<std::string> take_log() {
  std::vector<std::string> lines = library().take_log();
  for (std::string& line : own_library().take_log()) lines.push_back(std::move(line));
  return lines;
}

/// Returns the creator of the operator that replaces a plugin.
nvinfer1::IPluginCreatorV3One* own_creator(std::string_view stand_in) {
  for (const OperatorType* type : operators()) {
    for (const DropIn& drop_in : type->drop_ins) {
      if (drop_in.plugin_name == stand_in)
        return own_library().find(std::string(type->name), std::to_string(type->version));
    }
  }
  return nullptr;
}

/// Creates a plugin and returns the fields that an engine would store for it, under Graft's names.
std::map<std::string, SerializedField> made_by(const char* name, const char* version, const PluginFields& fields,
                                               const TensorDesc& input) {
  std::map<std::string, SerializedField> result;
  auto& creator = *library().find(name, version);
  for (SerializedField& field : build_plugin(creator, fields, {&input, 1}, {}, own_creator(name)).serialized) {
    const std::string key = field.name;
    result.emplace(key, std::move(field));
  }
  return result;
}

std::vector<float> floats(const SerializedField& field) {
  std::vector<float> result(static_cast<std::size_t>(field.length));
  std::memcpy(result.data(), field.bytes.data(), field.bytes.size());
  return result;
}

std::string text(const SerializedField& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()};
}

const TensorDesc image{DType::f32, Layout::linear, {2, 3, 4, 6}};
const std::vector<float> factors{0.5F, 2.F, 4.F};

TEST(StandIns, HaveTheirOwnersNamesAndFieldsInTheEmptyNamespace) {
  std::set<std::string> expected;
  for (const OperatorType* type : operators()) {
    for (const DropIn& drop_in : type->drop_ins) {
      if (!can_stand_in(drop_in.plugin_name)) continue;
      expected.insert(std::string(drop_in.plugin_name) + " " + std::string(drop_in.version));
      auto* creator = library().find(std::string(drop_in.plugin_name), std::string(drop_in.version));
      ASSERT_NE(creator, nullptr) << drop_in.plugin_name;
      EXPECT_STREQ(creator->getPluginNamespace(), "");
      const auto* fields = creator->getFieldNames();
      ASSERT_EQ(fields->nbFields, static_cast<std::int32_t>(drop_in.fields.size())) << drop_in.plugin_name;
      for (std::int32_t i = 0; i < fields->nbFields; ++i) {
        EXPECT_EQ(fields->fields[i].name, drop_in.fields[static_cast<std::size_t>(i)].name);
      }
    }
  }
  EXPECT_EQ(names_offered(), expected);
}

TEST(StandIns, MakePluginsThatEnginesKnowUnderGraftsName) {
  const float slope = 0.3F;
  const nvinfer1::PluginField field{"negSlope", &slope, nvinfer1::PluginFieldType::kFLOAT32, 1};
  const nvinfer1::PluginFieldCollection collection{1, &field};
  const std::unique_ptr<nvinfer1::IPluginV3> plugin(
      library().find("LReLU_TRT")->createPlugin("layer", &collection, nvinfer1::TensorRTPhase::kBUILD));
  ASSERT_NE(plugin, nullptr);
  const auto& core =
      *static_cast<nvinfer1::IPluginV3OneCore*>(plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kCORE));
  EXPECT_STREQ(core.getPluginName(), "LeakyReLU");
  EXPECT_STREQ(core.getPluginVersion(), "1");
  EXPECT_STREQ(core.getPluginNamespace(), "graft");
}

TEST(StandIns, LeaveOutTheNamesThatAreTaken) {
  ASSERT_EQ(setenv("GRAFT_LEAVE_OUT", "InstanceNormalization_TRT,LReLU_TRT,Somebody", 1), 0);
  const std::set<std::string> left = names_offered();
  ASSERT_EQ(unsetenv("GRAFT_LEAVE_OUT"), 0);
  EXPECT_EQ(left.size() + 4, names_offered().size());
  for (const char* name : {"InstanceNormalization_TRT 1", "InstanceNormalization_TRT 3", "LReLU_TRT 1"}) {
    EXPECT_THAT(left, Not(Contains(std::string(name))));
  }
  EXPECT_THAT(left, Contains(std::string("Normalize_TRT 1")));
}

/// Returns the fields that a creator under ONNX's name requires, each with its first choice.
std::vector<nvinfer1::PluginField> demanded(const OperatorType& type, bool has_changed_defaults = true) {
  const auto& changed = type.onnx_form->changed_defaults;
  std::vector<nvinfer1::PluginField> fields;
  for (const AttributeInfo& info : type.attributes) {
    const bool is_changed = std::find(changed.begin(), changed.end(), info.name) != changed.end();
    if (!info.required && !(is_changed && has_changed_defaults)) continue;
    const std::string_view first = info.choices.at(0);
    fields.emplace_back(info.name.data(), first.data(), nvinfer1::PluginFieldType::kCHAR,
                        static_cast<std::int32_t>(first.size()));
  }
  return fields;
}

std::unique_ptr<nvinfer1::IPluginV3> made_by(nvinfer1::IPluginCreatorV3One& creator,
                                             const std::vector<nvinfer1::PluginField>& fields) {
  const nvinfer1::PluginFieldCollection collection{static_cast<std::int32_t>(fields.size()), fields.data()};
  return std::unique_ptr<nvinfer1::IPluginV3>(
      creator.createPlugin("layer", &collection, nvinfer1::TensorRTPhase::kBUILD));
}

/// libgraft_onnx.so has these creators, and the library of stand-ins does not. TopK is not among them, as the operator
/// lacks an input of ONNX's; nor is NonMaxSuppression, as the operator has an additional output and the parser has a
/// layer of that name.
TEST(OnnxNames, AreThoseOfTheOperatorsThatComputeThem) {
  std::set<std::string> expected;
  PluginLibrary names(onnx_names());
  for (const OperatorType* type : operators()) {
    if (!type->takes_onnx_nodes()) continue;
    const std::string name(type->onnx_form->name);
    expected.insert(name + " 1");
    auto* creator = names.find(name, "1");
    ASSERT_NE(creator, nullptr) << name;
    EXPECT_STREQ(creator->getPluginNamespace(), "");
    EXPECT_EQ(creator->getFieldNames()->nbFields, static_cast<std::int32_t>(type->attributes.size())) << name;
    const auto plugin = made_by(*creator, demanded(*type));
    ASSERT_NE(plugin, nullptr) << name;
    const auto& core = *static_cast<nvinfer1::IPluginV3OneCore*>(
        plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kCORE));
    EXPECT_EQ(core.getPluginName(), type->name);
    EXPECT_STREQ(core.getPluginNamespace(), "graft");
  }
  const std::set<std::string> known = {"CausalConvWithState 1", "DeformConv 1",     "NonZero 1", "RoiAlign 1",
                                       "ScatterND 1",           "ScatterElements 1"};
  EXPECT_EQ(expected, known);
  EXPECT_EQ(names_offered(onnx_names()), expected);
  for (const std::string& name : names_offered()) EXPECT_THAT(expected, Not(Contains(name)));
}

/// The default of these attributes depends on the operator set: RoiAlign's coordinates differ up to set 15.
TEST(OnnxNames, DemandAttributesWhoseDefaultChanged) {
  PluginLibrary names(onnx_names());
  std::set<std::string_view> demanding;
  for (const OperatorType* type : operators()) {
    if (!type->takes_onnx_nodes() || type->onnx_form->changed_defaults.empty()) continue;
    const std::string name(type->onnx_form->name);
    demanding.insert(type->onnx_form->name);
    take_log();
    EXPECT_EQ(made_by(*names.find(name, "1"), demanded(*type, false)), nullptr);
    std::vector<std::string> log = take_log();
    for (std::string& line : names.take_log()) log.push_back(std::move(line));
    for (const std::string_view attribute : type->onnx_form->changed_defaults) {
      EXPECT_THAT(log, Contains(HasSubstr("`" + std::string(attribute) + "` is missing")));
    }
    EXPECT_THAT(log, Contains(HasSubstr("build the file with `graft build`")));
  }
  EXPECT_THAT(demanding, ElementsAre("RoiAlign"));
}

// The expectations below follow NVIDIA's public sources: plugin/ in github.com/NVIDIA/TensorRT, release/10.14.

TEST(StandIns, DemandTheFieldsThatTheirOwnersDemand) {
  const struct {
    const char* plugin;
    const char* version;
    PluginFields fields;
    const char* message;
  } refused[] = {
      {"LReLU_TRT", "1", {}, "`negSlope` is required and missing"},
      {"ResizeNearest_TRT", "1", {}, "`scale` is required and missing"},
      {"Normalize_TRT", "1", {{"weights", factors}}, "`nbWeights` is required and missing"},
      {"Normalize_TRT", "1", {{"nbWeights", std::int64_t{1}}}, "`weights` is required and missing"},
      {"Normalize_TRT", "1", {{"weights", factors}, {"nbWeights", std::int64_t{3}}}, "`nbWeights` is 3"},
      {"InstanceNormalization_TRT",
       "2",
       {{"scales", factors}, {"bias", factors}, {"activation", std::string("relu")}},
       "`activation` is unknown"},
      {"LReLU_TRT", "1", {{"negSlope", 0.1F}, {"x_scale", 0.1F}}, "`x_scale` is unknown"},
      {"LReLU_TRT", "1", {{"negSlope", std::numeric_limits<float>::quiet_NaN()}}, "`negSlope`"},
      {"l2norm_helper", "1", {{"op_type", std::int64_t{2}}}, "`op_type` is 2"},
      {"LeakyReluPlugin", "1", {{"alpha", 0.1F}, {"negSlope", 0.2F}}, "`alpha` has two different values, 0.1 and 0.2"},
  };
  for (const auto& [plugin, version, fields, message] : refused) {
    SCOPED_TRACE(message);
    take_log();
    EXPECT_THROW(static_cast<void>(made_by(plugin, version, fields, image)), Error);
    EXPECT_THAT(take_log(), Contains(HasSubstr(message)));
  }
}

TEST(StandIns, InstanceNormalizationsDefaultsAreZero) {
  const PluginFields given{{"scales", factors}, {"bias", factors}};
  const auto plain = made_by("InstanceNormalization_TRT", "1", given, image);
  EXPECT_THAT(floats(plain.at("epsilon")), ElementsAre(0));
  EXPECT_EQ(text(plain.at("activation")), "none");
}

TEST(StandIns, InstanceNormalizationsReluIsOnAboveZero) {
  for (const auto& [relu, activation] : {std::pair(-1, "none"), {0, "none"}, {1, "leaky_relu"}, {2, "leaky_relu"}}) {
    const auto made = made_by("InstanceNormalization_TRT", "3",
                              {{"scales", factors}, {"bias", factors}, {"relu", std::int64_t{relu}}}, image);
    EXPECT_EQ(text(made.at("activation")), activation) << relu;
    EXPECT_THAT(floats(made.at("alpha")), ElementsAre(0));
  }
}

TEST(StandIns, ResizeNearestScalesTheLastTwoAxes) {
  const auto made = made_by("ResizeNearest_TRT", "1", {{"scale", 2.F}}, image);
  EXPECT_THAT(floats(made.at("scales")), ElementsAre(2, 2));
  const TensorDesc volume{DType::f32, Layout::linear, {1, 2, 3, 4, 5}};
  EXPECT_THROW(static_cast<void>(made_by("ResizeNearest_TRT", "1", {{"scale", 2.F}}, volume)), Error);
}

TEST(StandIns, NormalizeDividesByAFactorForEachChannelAcrossSpace) {
  PluginFields fields{{"weights", factors}, {"nbWeights", std::int64_t{1}}};
  const auto by_pixel = made_by("Normalize_TRT", "1", fields, image);
  EXPECT_THAT(floats(by_pixel.at("weights")), ElementsAre(0.5F, 2, 4));
  EXPECT_THAT(floats(by_pixel.at("epsilon")), ElementsAre(0));
  fields["acrossSpatial"] = std::int64_t{1};
  EXPECT_THAT(floats(made_by("Normalize_TRT", "1", fields, image).at("weights")), ElementsAre(2, 0.5F, 0.25F));
  fields["channelShared"] = std::int64_t{1};
  fields["weights"] = std::vector{8.F};
  EXPECT_THAT(floats(made_by("Normalize_TRT", "1", fields, image).at("weights")), ElementsAre(8));
}

/// The test acts as TensorRT: it passes the inputs in the other plugin's order, serializes the plugin and loads it
/// again.
TEST(StandIns, TakeTheirOwnersInputs) {
  const auto f32 = [](const Extents& extents) { return TensorDesc{DType::f32, Layout::linear, extents}; };
  const TensorDesc x = f32({2, 4, 9, 8});
  const TensorDesc offset = f32({2, 36, 5, 4});
  const TensorDesc mask = f32({2, 18, 5, 4});
  const TensorDesc weight = f32({6, 4, 3, 3});
  const TensorDesc bias = f32({6});
  const PluginFields steps{{"stride", std::vector<std::int64_t>{2, 2}}, {"padding", std::vector<std::int64_t>{1, 1}}};
  const auto with_groups = [&](const char* groups) {
    PluginFields fields = steps;
    fields.emplace(groups, std::int64_t{2});
    return fields;
  };
  const struct {
    const char* plugin;
    const char* version;
    PluginFields fields;
    std::vector<TensorDesc> inputs;
    const char* order;
  } nodes[] = {
      {"ModulatedDeformConv2d",
       "1",
       with_groups("deformable_group"),
       {x, offset, mask, weight, bias},
       "x,offset,mask,weight,bias"},
      {"ModulatedDeformConv2d",
       "2",
       with_groups("deformable_group"),
       {x, offset, mask, weight},
       "x,offset,mask,weight,bias"},
      {"MMCVModulatedDeformConv2d",
       "1",
       with_groups("deform_groups"),
       {x, offset, mask, weight, bias},
       "x,offset,mask,weight,bias"},
      {"ModulatedDeformableConv2dTRT",
       "1",
       with_groups("deform_groups"),
       {x, offset, mask, weight, bias},
       "x,offset,mask,weight,bias"},
      {"ModulatedDeformableConv2dTRT2",
       "1",
       with_groups("deform_groups"),
       {x, offset, mask, weight},
       "x,offset,mask,weight,bias"},
      {"MMCVDeformConv2d", "1", with_groups("deform_groups"), {x, offset, weight}, "x,offset,weight"},
  };
  for (const auto& [plugin, version, fields, inputs, order] : nodes) {
    SCOPED_TRACE(plugin);
    auto& creator = *library().find(plugin, version);
    const BuiltPlugin built = build_plugin(creator, fields, inputs, {}, own_creator(plugin));
    ASSERT_EQ(built.outputs.size(), 1U);
    EXPECT_EQ(built.outputs[0], f32({2, 6, 5, 4}));
    std::string kept;
    for (const SerializedField& field : built.serialized) {
      if (field.name == "graft.inputs") kept = text(field);
    }
    EXPECT_EQ(kept, order);
    std::vector<TensorDesc> in_onnx_order{x, weight, offset, bias, mask};
    in_onnx_order.resize(inputs.size());
    EXPECT_THROW(static_cast<void>(build_plugin(creator, fields, in_onnx_order, {}, own_creator(plugin))), Error);
    EXPECT_THROW(static_cast<void>(build_plugin(creator, fields, {&x, 1}, {}, own_creator(plugin))), Error);
  }
}

TEST(StandIns, AttentionNeedsNoFirstPixels) {
  std::vector<TensorDesc> inputs{{DType::f16, Layout::linear, {2, 60, 4, 8}},
                                 {DType::i32, Layout::linear, {3, 2}},
                                 {DType::i32, Layout::linear, {3}},
                                 {DType::f16, Layout::linear, {2, 7, 4, 3, 5, 2}},
                                 {DType::f16, Layout::linear, {2, 7, 4, 3, 5}}};
  const char* name = "MultiscaleDeformableAttnPlugin_TRT";
  for (const auto& [version, sizes] : {std::pair("1", DType::i32), {"2", DType::i32}, {"1", DType::i64}}) {
    inputs[1].dtype = inputs[2].dtype = sizes;
    const BuiltPlugin built = build_plugin(*library().find(name, version), {}, inputs, {}, own_creator(name));
    EXPECT_EQ(built.outputs[0], (TensorDesc{DType::f16, Layout::linear, {2, 7, 4, 8}}));
    ASSERT_EQ(built.serialized.size(), 2U);
    EXPECT_EQ(built.serialized[1].name, "graft.inputs");
    EXPECT_EQ(text(built.serialized[1]), "value,spatial_shapes,,sampling_locations,attention_weights");
  }
}

}  // namespace
}  // namespace graft::tensorrt
