// What YAML holds at a place of a file of rules: strings, values and names, or an error that names the place.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/rule_file.hpp"

namespace graft::passes {

/// All methods throw Error with the line and column of a node that is something else.
class YamlReader {
 public:
  explicit YamlReader(std::string name) : name_(std::move(name)) {}

  /// Of the file, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Place place_of(const YAML::Node& node) const;
  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const;
  /// Nothing where the map has no such key.
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

}  // namespace graft::passes
