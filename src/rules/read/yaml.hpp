// Reads single values from the YAML of a file of rules: strings, numbers, lists and names. Errors name the place.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/rule.hpp"

namespace graft::rules {

/// Returns the value of `key` in a map, or nothing if the map does not contain the key.
[[nodiscard]] std::optional<YAML::Node> find_key(const YAML::Node& map, std::string_view key);

/// Reads values from YAML nodes. All methods throw Error with line and column if a node has another kind than expected.
class YamlReader {
 public:
  explicit YamlReader(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] Place place_of(const YAML::Node& node) const;
  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const;
  void check_keys(const YAML::Node& map, const std::vector<std::string>& allowed, std::string_view what) const;
  [[nodiscard]] std::string text_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] bool flag_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] NamePattern pattern_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] std::vector<NamePattern> patterns_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] RuleValue value_of(const YAML::Node& node) const;
  [[nodiscard]] std::size_t index_of(const YAML::Node& node) const;

 private:
  std::string name_;
};

}  // namespace graft::rules
