// Tests the reasons for which a plugin is not found or not created, by the registered creators.
#include "inspect/plugin_causes.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using nlohmann::json;

json creator(const std::string& version, const std::string& space, const std::string& generation = "V3") {
  return {{"name", "Clamp"},
          {"version", version},
          {"namespace", space},
          {"generation", generation},
          {"library", "/lib/libmine.so"},
          {"fields", {{{"name", "limit"}, {"type", "float32"}}}}};
}

class PluginCauses : public testing::Test {
 protected:
  void set(const std::string& name, onnx::AttributeData value) {
    node_->attributes[name] = onnx::NodeAttribute(std::move(value));
  }

  onnx::Model model_ = test::text_model({{"x"}}, "y = Clamp(x)", {"y"});
  onnx::Node* node_ = &test::producer(model_, "y");
};

TEST_F(PluginCauses, a_registered_plugin_has_no_cause) {
  EXPECT_FALSE(failed_look_up(*node_, json::array({creator("1", "")})));
}

TEST_F(PluginCauses, a_library_that_was_not_loaded) {
  EXPECT_EQ(failed_look_up(*node_, json::array())->cause, "library_missing");
}

TEST_F(PluginCauses, a_slip_in_the_name) {
  node_->op_type = "Clamb";
  const auto cause = failed_look_up(*node_, json::array({creator("2", "")}));
  ASSERT_TRUE(cause && cause->meant);
  EXPECT_EQ(cause->cause, "plugin_name");
  EXPECT_EQ(cause->meant->name, "Clamp");
  EXPECT_EQ(cause->meant->version, "2");
}

TEST_F(PluginCauses, another_version) {
  const auto cause = failed_look_up(*node_, json::array({creator("2", "")}));
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->cause, "plugin_version");
  EXPECT_EQ(cause->advice, "set the node's string attribute plugin_version to '2'");
}

TEST_F(PluginCauses, another_namespace) {
  EXPECT_EQ(failed_look_up(*node_, json::array({creator("1", "mine")}))->cause, "domain");
  set("plugin_namespace", std::string("theirs"));
  EXPECT_EQ(failed_look_up(*node_, json::array({creator("1", "mine")}))->cause, "plugin_namespace");
  set("plugin_namespace", std::string("mine"));
  EXPECT_FALSE(failed_look_up(*node_, json::array({creator("1", "mine")})));
}

TEST_F(PluginCauses, a_version_that_is_no_text) {
  set("plugin_version", std::int64_t{1});
  EXPECT_EQ(failed_look_up(*node_, json::array({creator("1", "")}))->cause, "plugin_version");
}

TEST_F(PluginCauses, the_older_generation) {
  const auto cause = cause_of_refusal(*node_, json::object(), json::array({creator("1", "", "V2")}), "");
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->cause, "plugin_generation");
}

TEST_F(PluginCauses, fields_that_are_missing_unknown_or_of_another_type) {
  const json refused = {{"message", "Could not create the plugin"}, {"function", "importPlugin"}};
  const json creators = json::array({creator("1", "")});
  EXPECT_EQ(cause_of_refusal(*node_, refused, creators, "")->cause, "field_missing");
  set("limt", 1.0F);
  EXPECT_EQ(cause_of_refusal(*node_, refused, creators, "")->cause, "plugin_field");
  EXPECT_EQ(cause_of_refusal(*node_, refused, creators, "")->advice, "did you mean limit for limt?");
  set("limit", std::string("2"));
  EXPECT_EQ(cause_of_refusal(*node_, refused, creators, "")->cause, "field_type");
  set("limit", -2.0F);
  EXPECT_EQ(cause_of_refusal(*node_, refused, creators, "limit has to be positive")->cause, "field_value");
}

TEST_F(PluginCauses, a_name_that_onnx_has) {
  node_->op_type = "Relu";
  node_->domain = "mine";
  const auto cause = taken_for_onnx(*node_, json::array());
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->cause, "override");
}

TEST_F(PluginCauses, an_operator_of_onnx_is_not_told_its_own_name) {
  const json refused = {{"message", "Plugin not found, are the plugin name, version, and namespace correct?"}};
  ASSERT_TRUE(cause_of_refusal(*node_, refused, json::array(), ""));
  node_->op_type = "DFT";
  const auto cause = cause_of_refusal(*node_, refused, json::array({creator("1", "")}), "");
  EXPECT_FALSE(cause) << cause->reason;
}

}  // namespace
}  // namespace graft::inspect
