// Reads strings, values and names from the YAML of a file of rules. Errors name the place.
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

/// Reads values from YAML nodes. All methods throw Error with the line and column of a node of another kind.
class YamlReader {
 public:
  explicit YamlReader(std::string name) : name_(std::move(name)) {}

  /// Returns the name of the file, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Place place_of(const YAML::Node& node) const;
  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const;
  /// Returns the value of a key, or nothing if the map does not have the key.
  [[nodiscard]] static std::optional<YAML::Node> find(const YAML::Node& map, std::string_view key);
  void check_keys(const YAML::Node& map, const std::vector<std::string>& allowed, std::string_view what) const;
  [[nodiscard]] std::string text_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] bool flag_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] NamePattern pattern_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] std::vector<NamePattern> patterns_of(const YAML::Node& node, std::string_view what) const;
  [[nodiscard]] RuleValue value_of(const YAML::Node& node) const;
  [[nodiscard]] static RuleValue::Data scalar_of(const YAML::Node& node);
  [[nodiscard]] std::size_t index_of(const YAML::Node& node) const;

 private:
  std::string name_;
};

}  // namespace graft::rules
