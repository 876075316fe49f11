// Tests that libraries of operators are added, checked and refused, also while other threads read the registry.
#include "graft/operator/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace graft {
namespace {

using testing::HasSubstr;

OperatorType type_of(std::string_view name) {
  return {.name = name,
          .version = 1,
          .doc = "",
          .source = "",
          .why_plugin = "",
          .attributes = {},
          .ports = {},
          .type_rows = {},
          .drop_ins = {},
          .create = [] { return std::unique_ptr<Operator>(); }};
}

TEST(Registry, WhatWasReadBeforeStaysAsItWas) {
  static const OperatorType first = type_of("RegistryTestFirst");
  static const OperatorType second = type_of("RegistryTestSecond");
  const auto before = operators();
  const std::vector<const OperatorType*> copied(before.begin(), before.end());
  ASSERT_TRUE(add_operator_library({.file = "first.so", .plugin_namespace = "", .operators = {&first}}).ok());
  const OperatorLibrary* library = library_of(first);
  ASSERT_NE(library, nullptr);
  ASSERT_TRUE(add_operator_library({.file = "second.so", .plugin_namespace = "", .operators = {&second}}).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), copied.begin(), copied.end()));
  EXPECT_EQ(library->file, "first.so");
  EXPECT_EQ(operators().size(), before.size() + 2);
  EXPECT_EQ(find_operator("RegistryTestSecond"), &second);

  static const OperatorType other = type_of("RegistryTestFirst");
  const Status again = add_operator_library({.file = "third.so", .plugin_namespace = "", .operators = {&other}});
  EXPECT_THAT(again.message(), HasSubstr("an operator of first.so already has this name"));
  EXPECT_EQ(operators().size(), before.size() + 2);
}

/// Tests the names of a drop-in's inputs, for an operator with two required and three optional inputs.
TEST(Registry, RefusesDropInsWhoseInputsAreNotTheOperators) {
  using Names = std::vector<std::string_view>;
  static std::deque<std::string> names;
  static std::deque<OperatorType> types;
  const auto added = [](const Names& inputs) {
    OperatorType type = type_of(names.emplace_back("RegistryTestPorts" + std::to_string(names.size())));
    type.ports = {input("x", "T", "N", ""),          input("w", "T", "N", ""),
                  optional_input("b", "T", "N", ""), optional_input("i", DType::i32, "N", ""),
                  optional_input("m", "T", "N", ""), output("y", "T", "N", "")};
    type.drop_ins = {{.plugin_name = type.name, .version = "1", .fields = {}, .doc = "", .inputs = inputs}};
    const OperatorType* kept = &types.emplace_back(std::move(type));
    return add_operator_library({.file = names.back(), .plugin_namespace = "", .operators = {kept}}).message();
  };
  for (const Names& right : {Names{}, Names{"x", "w"}, Names{"x", "", "w"}, Names{"x", "w", "b", "i", "m"},
                             Names{"x", "b", "w"}, Names{"x", "i", "m", "w", "b"}}) {
    EXPECT_EQ(added(right), "");
  }
  const std::size_t before = operators().size();
  const std::pair<Names, const char*> wrong[] = {
      {{"x", "w", "mask"}, "`mask` is not an input of the operator"},
      {{"x", "w", "y"}, "`y` is not an input of the operator"},
      {{"x", "b"}, "`w` is required and missing"},
      {{"x", "w", "b", "b"}, "`b` appears twice"},
      {{"w", "x"}, "`x` must be the first input"},
      {{"", "x", "w"}, "`x` must be the first input"},
      {{"x", "w", "b", "m"}, "`i` is optional and comes before `m`"},
      {{"x", "w", "b", "m", "i"}, "`i` is optional and comes before `m`"},
      {Names(33, ""), "a plugin may have at most 32 inputs"},
  };
  for (const auto& [inputs, message] : wrong) EXPECT_THAT(added(inputs), HasSubstr(message));
  EXPECT_EQ(operators().size(), before);
}

/// add_operator_library does not check linked operators, so a program calls check_operators for them.
TEST(Registry, ChecksOperatorsThatComeTogether) {
  static OperatorType first = type_of("RegistryTestTogether");
  first.ports = {input("x", "T", "N", ""), input("w", "T", "N", ""), output("y", "T", "N", "")};
  static OperatorType second = first;
  second.name = "RegistryTestTogetherToo";
  const std::array<const OperatorType*, 2> both{&first, &second};
  EXPECT_EQ(check_operators(both).message(), "");
  first.onnx_form = second.onnx_form = OnnxForm{.name = "RegistryTestOnnx"};
  EXPECT_THAT(
      check_operators(both).message(),
      HasSubstr("operator RegistryTestTogetherToo computes ONNX's RegistryTestOnnx, which RegistryTestTogether, an "
                "operator of the same library, already computes"));
  second.onnx_form = std::nullopt;
  EXPECT_EQ(check_operators(both).message(), "");
  second.drop_ins = {{.plugin_name = "P", .version = "1", .fields = {}, .doc = "", .inputs = {"x", "weight"}}};
  EXPECT_THAT(check_operators(both).message(), HasSubstr("`weight` is not an input of the operator"));
  EXPECT_EQ(check_operators(linked_operators()).message(), "");
}

TEST(Registry, RefusesAnOnnxNameThatIsThere) {
  static OperatorType second = type_of("RegistryTestTopK");
  second.onnx_form = OnnxForm{.name = "TopK"};
  const Status status = add_operator_library({.file = "second.so", .plugin_namespace = "", .operators = {&second}});
  EXPECT_THAT(status.message(),
              HasSubstr("operator RegistryTestTopK computes ONNX's TopK, which LargestK, an operator of "
                        "Graft, already computes"));
}

/// A shape input is not counted among the tensors, and a variadic input has no fixed position, so neither can be
/// reordered.
TEST(Registry, RefusesAnotherOrderOfInputsThatHaveNoPlaces) {
  static OperatorType shaped = type_of("RegistryTestShaped");
  shaped.ports = {input("x", "T", "N", ""), shape_input("s", "2", ""), output("y", "T", "N", "")};
  static OperatorType variadic = type_of("RegistryTestVariadic");
  variadic.ports = {input("x", "T", "N", ""), variadic_input("s", "T", "N", ""), output("y", "T", "N", "")};
  for (OperatorType* type : {&shaped, &variadic}) {
    type->drop_ins = {{.plugin_name = type->name, .version = "1", .fields = {}, .doc = "", .inputs = {"x", "s"}}};
    const Status status = add_operator_library({.file = "wrong.so", .plugin_namespace = "", .operators = {type}});
    EXPECT_THAT(status.message(), HasSubstr("keep their order")) << type->name;
  }
}

/// Tests the names of an ONNX form's inputs, for an operator with two required inputs, an optional one, and attributes.
TEST(Registry, RefusesOnnxFormsThatAreNotTheOperators) {
  static std::deque<std::string> names;
  static std::deque<OperatorType> types;
  const auto added = [](const OnnxForm& form) {
    OperatorType type = type_of(names.emplace_back("RegistryTestForm" + std::to_string(names.size())));
    type.ports = {input("x", "T", "N", ""), input("w", "T", "N", ""), optional_input("b", "T", "N", ""),
                  output("y", "T", "N", "")};
    for (const std::string_view attribute : {"k", "axis"}) {
      AttributeInfo& info = type.attributes.emplace_back();
      info.name = attribute;
      info.type = AttributeType::integer;
    }
    type.onnx_form = form;
    const OperatorType* kept = &types.emplace_back(std::move(type));
    return add_operator_library({.file = names.back(), .plugin_namespace = "", .operators = {kept}}).message();
  };
  const OnnxForm right[] = {{.name = "FirstForm"},
                            {.name = "SecondForm", .inputs = {"x", "w"}, .changed_defaults = {"axis"}},
                            {.name = "ThirdForm", .inputs = {"axis", "x", "w", "k", "b"}}};
  for (const OnnxForm& form : right) EXPECT_EQ(added(form), "");
  const std::size_t before = operators().size();
  const std::pair<OnnxForm, const char*> wrong[] = {
      {{.name = "F", .inputs = {"x", "w", "y"}}, "`y` is neither an input nor an attribute of the operator"},
      {{.name = "F", .inputs = {"x", "k"}}, "`w` is required and missing"},
      {{.name = "F", .inputs = {"x", "k", "w", "k"}}, "`k` appears twice"},
      {{.name = "F", .inputs = {"w", "x"}}, "`w` is not in the order of the operator's inputs"},
      {{.name = "F", .changed_defaults = {"x"}}, "`x` is not an attribute of the operator"},
  };
  for (const auto& [form, message] : wrong) EXPECT_THAT(added(form), HasSubstr(message));
  EXPECT_EQ(operators().size(), before);

  static OperatorType variadic = type_of("RegistryTestVariadicForm");
  variadic.ports = {input("x", "T", "N", ""), variadic_input("s", "T", "N", ""), output("y", "T", "N", "")};
  variadic.onnx_form = {.name = "F", .inputs = {"x", "s"}};
  EXPECT_THAT(add_operator_library({.file = "wrong.so", .plugin_namespace = "", .operators = {&variadic}}).message(),
              HasSubstr("`s` is a variadic input"));
}

TEST(Registry, ThreadsReadWhileOneAdds) {
  static const std::array<std::string, 4> names = {"RegistryTestA", "RegistryTestB", "RegistryTestC", "RegistryTestD"};
  static const std::array<OperatorType, 4> types = {type_of(names[0]), type_of(names[1]), type_of(names[2]),
                                                    type_of(names[3])};
  std::atomic<bool> done = false;
  std::atomic<bool> is_whole = true;
  std::thread reader([&] {
    while (!done) {
      for (const OperatorType* type : operators()) is_whole = is_whole && !type->name.empty();
    }
  });
  for (const OperatorType& type : types) {
    EXPECT_TRUE(
        add_operator_library({.file = std::string(type.name), .plugin_namespace = "", .operators = {&type}}).ok());
  }
  done = true;
  reader.join();
  EXPECT_TRUE(is_whole);
}

}  // namespace
}  // namespace graft
