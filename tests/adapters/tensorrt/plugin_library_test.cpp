// The plugin library through its exported functions alone: creators, build-time calls, refused fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "adapters/tensorrt/convert.hpp"
#include "adapters/tensorrt/plugin_host.hpp"
#include "adapters/tensorrt/schema.hpp"
#include "graft/error.hpp"
#include "graft/registry.hpp"

namespace graft::tensorrt {
namespace {

using testing::Contains;
using testing::HasSubstr;

PluginLibrary& library() {
  static PluginLibrary loaded(std::getenv("GRAFT_PLUGIN_LIBRARY"));
  return loaded;
}

/// Fields that make a valid plugin: every required one.
PluginFields required_fields(const PluginSchema& schema) {
  PluginFields fields;
  for (const SchemaField& field : schema.fields) {
    if (field.attribute->required) fields[field.name] = field.attribute->default_value;
  }
  return fields;
}

struct NamedSchema {
  PluginSchema schema;
  friend std::ostream& operator<<(std::ostream& out, const NamedSchema& named) { return out << named.schema.name; }
};

std::vector<NamedSchema> all_schemas() {
  std::vector<NamedSchema> result;
  for (const OperatorType* type : operators()) {
    for (PluginSchema& schema : schemas_of(*type)) result.push_back({std::move(schema)});
  }
  return result;
}

class EveryPlugin : public testing::TestWithParam<NamedSchema> {
 protected:
  const PluginSchema& schema() { return GetParam().schema; }
  nvinfer1::IPluginCreatorV3One& creator() {
    auto* found = library().find(schema().name, schema().version);
    if (found == nullptr) throw Error("the library has no creator " + schema().name);
    return *found;
  }
};

INSTANTIATE_TEST_SUITE_P(Schemas, EveryPlugin, testing::ValuesIn(all_schemas()),
                         [](const auto& info) { return info.param.schema.name; });

TEST(PluginLibrary, HasTheDropInNames) {
  std::set<std::string> names;
  for (auto* creator : library().creators()) names.insert(creator->getPluginName());
  for (const char* name : {"LeakyReLU", "L2Normalize", "l2norm_helper", "LReLU_TRT", "LeakyReluPlugin"}) {
    EXPECT_THAT(names, Contains(std::string(name)));
  }
}

TEST(PluginLibrary, RefusesAFileThatIsNoPluginLibrary) {
  EXPECT_THROW(PluginLibrary("/nowhere/libnothing.so"), Error);
  EXPECT_THROW(PluginLibrary("libm.so.6"), Error);
}

TEST_P(EveryPlugin, AnnouncesEachFieldWithItsType) {
  const auto* announced = creator().getFieldNames();
  ASSERT_EQ(announced->nbFields, static_cast<std::int32_t>(schema().fields.size()));
  for (std::int32_t i = 0; i < announced->nbFields; ++i) {
    const SchemaField& field = schema().fields[static_cast<std::size_t>(i)];
    EXPECT_EQ(announced->fields[i].name, field.name);
    EXPECT_EQ(announced->fields[i].type, field_type(field.attribute->type));
  }
}

TEST_P(EveryPlugin, BuildsInEveryTypeRow) {
  for (const TypeRow& row : schema().type->type_rows) {
    for (const Extents& extents : {Extents{2, 40, 5, 7}, Extents{0, 3, 1, 1}, Extents{1, 1, 1, 1}}) {
      std::vector<TensorDesc> inputs;
      for (std::size_t i = 0; i < schema().type->input_count(); ++i) {
        inputs.push_back({row.formats[i].dtype, row.formats[i].layout, extents});
      }
      SCOPED_TRACE(to_string(inputs[0]));
      const BuiltPlugin built = build_plugin(creator(), required_fields(schema()), inputs);
      EXPECT_EQ(built.serialized.size(), schema().fields.size());
      EXPECT_EQ(built.outputs.size(), schema().type->output_count());
    }
  }
}

TEST_P(EveryPlugin, KeepsTheValueOfEachField) {
  for (const SchemaField& field : schema().fields) {
    SCOPED_TRACE(field.name);
    AttributeValue changed = field.attribute->default_value;
    if (auto* number = std::get_if<float>(&changed)) *number = 0.25F;
    if (auto* integer = std::get_if<std::int64_t>(&changed)) *integer = 1;
    if (auto* integers = std::get_if<std::vector<std::int64_t>>(&changed)) *integers = {-1};
    if (auto* text = std::get_if<std::string>(&changed)) *text = field.attribute->choices.back();
    PluginFields fields = required_fields(schema());
    fields[field.name] = changed;
    const TensorDesc input{DType::f32, Layout::linear, {2, 3, 4}};
    const BuiltPlugin built = build_plugin(creator(), fields, {&input, 1});
    const auto kept = std::find_if(built.serialized.begin(), built.serialized.end(),
                                   [&](const SerializedField& each) { return each.name == field.name; });
    ASSERT_NE(kept, built.serialized.end());
    const nvinfer1::PluginField expected = to_field(field.name.c_str(), changed);
    EXPECT_EQ(kept->type, expected.type);
    EXPECT_EQ(kept->length, expected.length);
    EXPECT_EQ(std::memcmp(kept->bytes.data(), expected.data, kept->bytes.size()), 0);
  }
}

TEST_P(EveryPlugin, RefusesAnUnknownFieldByName) {
  PluginFields fields = required_fields(schema());
  fields["no_such_field"] = 1.0F;
  const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
  library().take_log();
  EXPECT_THROW(static_cast<void>(build_plugin(creator(), fields, {&input, 1})), Error);
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("`no_such_field` is unknown")));
}

TEST_P(EveryPlugin, RefusesAnIllTypedFieldByName) {
  for (const SchemaField& field : schema().fields) {
    SCOPED_TRACE(field.name);
    PluginFields fields = required_fields(schema());
    const bool is_text = field.attribute->type == AttributeType::text;
    fields[field.name] = is_text ? AttributeValue(1.0F) : AttributeValue(std::string("text"));
    const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
    library().take_log();
    EXPECT_THROW(static_cast<void>(build_plugin(creator(), fields, {&input, 1})), Error);
    EXPECT_THAT(library().take_log(), Contains(HasSubstr("`" + field.name + "`: found type")));
  }
}

TEST_P(EveryPlugin, RefusesAMissingRequiredFieldByName) {
  for (const SchemaField& field : schema().fields) {
    if (!field.attribute->required) continue;
    PluginFields fields = required_fields(schema());
    fields.erase(field.name);
    const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
    library().take_log();
    EXPECT_THROW(static_cast<void>(build_plugin(creator(), fields, {&input, 1})), Error);
    EXPECT_THAT(library().take_log(), Contains(HasSubstr("`" + field.name + "` is required and missing")));
  }
}

TEST_P(EveryPlugin, RefusesTypesThatNoRowHas) {
  const TensorDesc input{DType::i64, Layout::linear, {2, 3}};
  library().take_log();
  EXPECT_THROW(static_cast<void>(build_plugin(creator(), required_fields(schema()), {&input, 1})), Error);
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("no type row for inputs of i64")));
}

struct RefusedField {
  const char* plugin;
  const char* field;
  AttributeValue value;
  const char* message;
};

TEST(PluginFields, OutOfRangeValuesAreRefusedByName) {
  const RefusedField refused[] = {
      {"L2Normalize", "epsilon", -1.0F, "`epsilon`: found -1"},
      {"L2Normalize", "epsilon_mode", std::string("maximum"), "one of max, norm, add"},
      {"L2Normalize", "axes", std::vector<std::int64_t>{}, "`axes`: found"},
      {"L2Normalize", "x_scale", 0.0F, "`x_scale`: found 0"},
      {"LReLU_TRT", "negSlope", std::numeric_limits<float>::quiet_NaN(), "`negSlope`"},
      {"l2norm_helper", "op_type", std::int64_t{2}, "`op_type`: found 2"},
  };
  for (const RefusedField& field : refused) {
    SCOPED_TRACE(std::string(field.plugin) + " " + field.field);
    const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
    library().take_log();
    EXPECT_THROW(
        static_cast<void>(build_plugin(*library().find(field.plugin), {{field.field, field.value}}, {&input, 1})),
        Error);
    EXPECT_THAT(library().take_log(), Contains(HasSubstr(field.message)));
  }
}

TEST(PluginFields, AnAxisOutsideTheRankIsRefusedWhenTheRankIsKnown) {
  const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
  library().take_log();
  EXPECT_THROW(static_cast<void>(
                   build_plugin(*library().find("L2Normalize"), {{"axes", std::vector<std::int64_t>{2}}}, {&input, 1})),
               Error);
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("found 2, allowed is -2 to 1")));
}

TEST(PluginFields, TwoNamesOfOneAttributeMustAgree) {
  const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
  auto& creator = *library().find("LeakyReluPlugin");
  EXPECT_NO_THROW(static_cast<void>(build_plugin(creator, {{"alpha", 0.1F}, {"negSlope", 0.1F}}, {&input, 1})));
  library().take_log();
  EXPECT_THROW(static_cast<void>(build_plugin(creator, {{"alpha", 0.1F}, {"negSlope", 0.2F}}, {&input, 1})), Error);
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("`alpha`: found both")));
}

TEST(PluginFields, NarrowIntegersWiden) {
  const std::int32_t op_type = 1;
  const nvinfer1::PluginField field{"op_type", &op_type, nvinfer1::PluginFieldType::kINT32, 1};
  const nvinfer1::PluginFieldCollection collection{1, &field};
  const std::unique_ptr<nvinfer1::IPluginV3> plugin(
      library().find("l2norm_helper")->createPlugin("widened", &collection, nvinfer1::TensorRTPhase::kBUILD));
  ASSERT_NE(plugin, nullptr);
}

TEST(PluginFormats, ChannelVectorLayoutsAreForNormsOverChannelsOnly) {
  const TensorDesc input{DType::f16, Layout::hwc8, {2, 16, 4, 4}};
  auto& creator = *library().find("L2Normalize");
  EXPECT_NO_THROW(static_cast<void>(build_plugin(creator, {{"axes", std::vector<std::int64_t>{-3}}}, {&input, 1})));
  EXPECT_THROW(static_cast<void>(build_plugin(creator, {{"axes", std::vector<std::int64_t>{2}}}, {&input, 1})), Error);
}

TEST(PluginBuild, LoadsNoCudaDriver) {
  const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
  static_cast<void>(build_plugin(*library().find("L2Normalize"), {}, {&input, 1}));
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_THAT(text, testing::Not(HasSubstr("libcuda.so"))) << "a call of the build phase initialised CUDA";
}

}  // namespace
}  // namespace graft::tensorrt
