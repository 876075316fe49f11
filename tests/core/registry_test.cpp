// Operators that are added while others read them.
#include "graft/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

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
  EXPECT_THAT(again.message(), HasSubstr("an operator of first.so has that name"));
  EXPECT_EQ(operators().size(), before.size() + 2);
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
