// Tests the plugin library through its exported functions: creators, build-time calls, refused fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/tensorrt/convert.hpp"
#include "adapters/tensorrt/plugin_host.hpp"
#include "adapters/tensorrt/schema.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "ops/operator_case.hpp"

namespace graft::tensorrt {
namespace {

using testing::Contains;
using testing::HasSubstr;

PluginLibrary& library() {
  static PluginLibrary loaded(std::getenv("GRAFT_PLUGIN_LIBRARY"));
  return loaded;
}

/// Returns an operator's attributes as the plugin fields of a schema.
PluginFields fields_of(const PluginSchema& schema, const Operator& op) {
  PluginFields fields;
  for (const SchemaField& field : schema.fields) {
    if (field.attribute != nullptr) fields[field.name] = *op.get(field.attribute->name);
  }
  return fields;
}

/// Returns the cases of the schema's operator that are valid and not large.
std::vector<const ops::OperatorCase*> good_cases(const PluginSchema& schema) {
  std::vector<const ops::OperatorCase*> result;
  for (const auto& [type, cases] : ops::operator_cases()) {
    for (const ops::OperatorCase& test : cases) {
      if (type == schema.type && test.refused.empty() && !test.large) result.push_back(&test);
    }
  }
  return result;
}

struct NamedSchema {
  PluginSchema schema;
  friend std::ostream& operator<<(std::ostream& out, const NamedSchema& named) { return out << named.schema.name; }
};

std::vector<NamedSchema> all_schemas() {
  std::vector<NamedSchema> result;
  for (const OperatorType* type : operators()) {
    result.push_back({own_schema(*type)});
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
                         [](const auto& info) { return info.param.schema.name + "_" + info.param.schema.version; });

TEST(PluginLibrary, HasGraftsOperatorsAloneInItsNamespace) {
  std::set<std::string> names;
  for (auto* creator : library().creators()) {
    names.insert(creator->getPluginName());
    EXPECT_STREQ(creator->getPluginNamespace(), "graft");
  }
  std::set<std::string> expected;
  for (const OperatorType* type : operators()) expected.insert(std::string(type->name));
  EXPECT_EQ(names, expected);
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
    EXPECT_EQ(announced->fields[i].type, field_type(field.type));
  }
}

TEST_P(EveryPlugin, BuildsInEveryTypeRow) {
  constexpr int enough = 8;
  for (const TypeRow& row : schema().type->type_rows) {
    int built_cases = 0;
    for (const ops::OperatorCase* test : good_cases(schema())) {
      if (built_cases == enough || ops::matching_row(*schema().type, test->inputs) != &row) continue;
      ++built_cases;
      std::vector<Layout> layouts;
      SCOPED_TRACE(test->name);
      for (const TensorDesc& desc : ops::output_descs(*test->op, test->inputs)) layouts.push_back(desc.layout);
      const BuiltPlugin built = build_plugin(creator(), fields_of(schema(), *test->op), test->inputs, layouts);
      EXPECT_EQ(built.outputs.size(), schema().type->output_count());
    }
    EXPECT_GT(built_cases, 0) << "no case for the row of " << to_string(row.formats[0].dtype);
  }
}

TEST_P(EveryPlugin, KeepsTheValueOfEachField) {
  std::set<std::string> differing;
  std::set<const Operator*> seen;
  for (const ops::OperatorCase* test : good_cases(schema())) {
    if (!seen.insert(test->op.get()).second) continue;
    SCOPED_TRACE(test->name);
    std::vector<Layout> layouts;
    for (const TensorDesc& desc : ops::output_descs(*test->op, test->inputs)) layouts.push_back(desc.layout);
    const PluginFields fields = fields_of(schema(), *test->op);
    const BuiltPlugin built = build_plugin(creator(), fields, test->inputs, layouts);
    ASSERT_EQ(built.serialized.size(), fields.size());
    for (const SerializedField& kept : built.serialized) {
      const AttributeValue& value = fields.at(kept.name);
      const nvinfer1::PluginField expected = to_field(kept.name.c_str(), value);
      EXPECT_EQ(kept.type, expected.type);
      ASSERT_EQ(kept.length, expected.length);
      const auto* data = static_cast<const std::byte*>(expected.data);
      EXPECT_TRUE(std::equal(kept.bytes.begin(), kept.bytes.end(), data)) << kept.name;
      if (value != schema().find(kept.name.c_str())->attribute->default_value) differing.insert(kept.name);
    }
  }
  for (const SchemaField& field : schema().fields) {
    if (field.attribute == nullptr) continue;
    EXPECT_TRUE(differing.contains(field.name))
        << "no case gives `" << field.name << "` another value than its default";
  }
}

TEST_P(EveryPlugin, RefusesAnUnknownFieldByName) {
  const ops::OperatorCase& test = *good_cases(schema()).front();
  PluginFields fields = fields_of(schema(), *test.op);
  fields["no_such_field"] = 1.0F;
  library().take_log();
  EXPECT_THROW(static_cast<void>(build_plugin(creator(), fields, test.inputs)), Error);
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("`no_such_field` is unknown")));
}

TEST_P(EveryPlugin, RefusesAnIllTypedFieldByName) {
  const ops::OperatorCase& test = *good_cases(schema()).front();
  for (const SchemaField& field : schema().fields) {
    SCOPED_TRACE(field.name);
    PluginFields fields = fields_of(schema(), *test.op);
    const bool is_text = field.type == AttributeType::text;
    fields[field.name] = is_text ? AttributeValue(1.0F) : AttributeValue(std::string("text"));
    library().take_log();
    EXPECT_THROW(static_cast<void>(build_plugin(creator(), fields, test.inputs)), Error);
    EXPECT_THAT(library().take_log(), Contains(HasSubstr("`" + field.name + "` has type")));
  }
}

TEST_P(EveryPlugin, RefusesAMissingRequiredFieldByName) {
  const ops::OperatorCase& test = *good_cases(schema()).front();
  for (const SchemaField& field : schema().fields) {
    if (field.attribute == nullptr || !field.attribute->required) continue;
    PluginFields fields = fields_of(schema(), *test.op);
    fields.erase(field.name);
    library().take_log();
    EXPECT_THROW(static_cast<void>(build_plugin(creator(), fields, test.inputs)), Error);
    EXPECT_THAT(library().take_log(), Contains(HasSubstr("`" + field.name + "` is required and missing")));
  }
}

TEST_P(EveryPlugin, RefusesTypesThatNoRowHas) {
  const ops::OperatorCase& test = *good_cases(schema()).front();
  std::vector<TensorDesc> inputs = test.inputs;
  inputs[0].dtype = DType::u8;
  library().take_log();
  EXPECT_THROW(static_cast<void>(build_plugin(creator(), fields_of(schema(), *test.op), inputs)), Error);
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("does not support inputs of the types u8")));
}

struct RefusedField {
  const char* plugin;
  const char* field;
  AttributeValue value;
  const char* message;
};

TEST(PluginFields, OutOfRangeValuesAreRefusedByName) {
  const RefusedField refused[] = {
      {"L2Normalize", "epsilon", -1.0F, "`epsilon` is -1"},
      {"L2Normalize", "epsilon_mode", std::string("maximum"), "one of max, norm, add"},
      {"L2Normalize", "axes", std::vector<std::int64_t>{}, "`axes` is empty"},
      {"L2Normalize", "x_scale", 0.0F, "`x_scale` is 0"},
      {"LeakyReLU", "alpha", std::numeric_limits<float>::quiet_NaN(), "`alpha`"},
      {"L2NormHelper", "op_type", std::int64_t{2}, "`op_type` is 2"},
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
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("contains 2; each axis must be between -2 and 1")));
}

TEST(PluginFields, NarrowIntegersWiden) {
  const std::int32_t op_type = 1;
  const nvinfer1::PluginField field{"op_type", &op_type, nvinfer1::PluginFieldType::kINT32, 1};
  const nvinfer1::PluginFieldCollection collection{1, &field};
  const std::unique_ptr<nvinfer1::IPluginV3> plugin(
      library().find("L2NormHelper")->createPlugin("widened", &collection, nvinfer1::TensorRTPhase::kBUILD));
  ASSERT_NE(plugin, nullptr);
}

TEST(PluginFormats, ChannelVectorLayoutsAreForNormsOverChannelsOnly) {
  const TensorDesc input{DType::f16, Layout::hwc8, {2, 16, 4, 4}};
  auto& creator = *library().find("L2Normalize");
  EXPECT_NO_THROW(static_cast<void>(build_plugin(creator, {{"axes", std::vector<std::int64_t>{-3}}}, {&input, 1})));
  EXPECT_THROW(static_cast<void>(build_plugin(creator, {{"axes", std::vector<std::int64_t>{2}}}, {&input, 1})), Error);
}

/// Engines contain these bytes, so every later version of the library has to read them (docs/versions.md).
TEST(PluginBuild, SerializesTheBytesThatEnginesContain) {
  using Type = nvinfer1::PluginFieldType;
  const auto bytes = [](std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return std::vector<std::byte>(view.begin(), view.end());
  };
  const std::string_view axes("\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  const std::string_view half("\0\0\0\x3f", 4);
  const std::string_view one("\0\0\x80\x3f", 4);
  const std::vector<SerializedField> expected = {{"axes", Type::kINT64, 2, bytes(axes)},
                                                 {"epsilon", Type::kFLOAT32, 1, bytes(half)},
                                                 {"epsilon_mode", Type::kCHAR, 3, bytes("add")},
                                                 {"x_scale", Type::kFLOAT32, 1, bytes(one)},
                                                 {"y_scale", Type::kFLOAT32, 1, bytes(one)}};
  const PluginFields fields = {
      {"axes", std::vector<std::int64_t>{1, -1}}, {"epsilon", 0.5F}, {"epsilon_mode", std::string("add")}};
  const TensorDesc input{DType::f32, Layout::linear, {2, 3, 4}};
  EXPECT_EQ(build_plugin(*library().find("L2Normalize"), fields, {&input, 1}).serialized, expected);
}

TEST(PluginBuild, LoadsNoCudaDriver) {
  const TensorDesc input{DType::f32, Layout::linear, {2, 3}};
  static_cast<void>(build_plugin(*library().find("L2Normalize"), {}, {&input, 1}));
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_THAT(text, testing::Not(HasSubstr("libcuda.so"))) << "a call of the build phase initialized CUDA";
}

}  // namespace
}  // namespace graft::tensorrt
