// The report of `plugins`: the creators of plugin libraries, and checks of their contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"
#include "graft/report/tensorrt.hpp"

namespace graft::report {

/// A field that a creator reads.
struct PluginField {
  std::string name;
  std::string type;
  std::int64_t length = 0;

  static constexpr auto fields() {
    return std::tuple{field("name", &PluginField::name, "The name of the field."),
                      field("type", &PluginField::type, "The type of the field's elements, such as 'float32'."),
                      field("length", &PluginField::length, "The number of the field's elements.")};
  }
};

/// A check of a creator and its plugin.
struct PluginCheck {
  std::string check;
  std::string outcome;
  std::string detail;

  [[nodiscard]] bool is_passed() const { return outcome == "passed"; }
  [[nodiscard]] bool is_failed() const { return outcome == "failed"; }

  static constexpr auto fields() {
    return std::tuple{
        field("check", &PluginCheck::check, "The name of the check."),
        field("outcome", &PluginCheck::outcome, "'passed', 'failed' or 'not checked'."),
        field("detail", &PluginCheck::detail, "What was run, what is wrong, or why the check was not made.")};
  }
};

/// The number of checks with each outcome.
struct CheckCounts {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t left_out = 0;  ///< Number of checks that could not run.

  void add(const std::vector<PluginCheck>& checks) {
    for (const PluginCheck& check : checks) ++(check.is_passed() ? passed : check.is_failed() ? failed : left_out);
  }
  [[nodiscard]] std::size_t made() const { return passed + failed; }
  [[nodiscard]] std::size_t all() const { return made() + left_out; }

  static constexpr auto fields() {
    return std::tuple{field("made", &CheckCounts::made, "The number of checks that were made."),
                      field("all", &CheckCounts::all, "The number of all checks."),
                      field("failed", &CheckCounts::failed, "The number of checks that failed.")};
  }
};

/// A plugin creator in TensorRT's registry.
struct PluginCreator {
  std::string name;
  std::string version;
  std::string plugin_namespace;
  std::string interface;
  std::string generation;
  std::vector<PluginField> plugin_fields;
  std::vector<PluginCheck> checks;

  static constexpr auto fields() {
    return std::tuple{field("name", &PluginCreator::name, "The name of the plugin."),
                      field("version", &PluginCreator::version, "The version of the plugin."),
                      field("namespace", &PluginCreator::plugin_namespace, "The namespace of the plugin; often empty."),
                      field("interface", &PluginCreator::interface, "The name of the creator's interface."),
                      field("generation", &PluginCreator::generation,
                            "'V2', which NVIDIA deprecates, 'V3', 'V3 quick' or 'unknown'."),
                      field("fields", &PluginCreator::plugin_fields, "The fields that the creator reads."),
                      field_if_any("checks", &PluginCreator::checks, "The checks, if they were requested.")};
  }
};

/// A plugin library and the creators that it registers.
struct PluginLibrary {
  std::string path;
  std::string sha256;
  std::vector<PluginCreator> creators;

  static constexpr auto fields() {
    return std::tuple{field("path", &PluginLibrary::path, "The path of the library, as given."),
                      field("sha256", &PluginLibrary::sha256, "The SHA-256 digest of the file."),
                      field("creators", &PluginLibrary::creators, "The creators that the library adds.")};
  }
};

struct PluginsReport {
  TensorRTIdentity tensorrt;
  std::vector<PluginLibrary> libraries;
  std::optional<CheckCounts> checks;
  std::vector<std::string> tensorrt_warnings = {};  ///< TensorRT's messages while it loaded the libraries.

  /// Returns whether no check found that a plugin violates TensorRT's contract. The inner optional is empty if a check
  /// was left out and none failed; the outer one is empty if no checks were requested.
  [[nodiscard]] std::optional<std::optional<bool>> conforms() const {
    if (!checks) return std::nullopt;
    if (checks->failed == 0 && checks->left_out != 0) return std::optional<bool>();
    return checks->failed == 0;
  }

  static constexpr Schema schema{"graft plugins", 1, "The plugin creators of libraries, and checks of their contract."};
  static constexpr auto fields() {
    return std::tuple{
        field("tensorrt", &PluginsReport::tensorrt, "The TensorRT whose plugin registry was used."),
        field("plugin_libraries", &PluginsReport::libraries, "The libraries, in the order in which they were given."),
        field_if_any(
            "conforms", &PluginsReport::conforms,
            "If checks were requested: false where one failed, true where all were made and passed, null where "
            "one was left out and none failed."),
        field_if_any("checks", &PluginsReport::checks,
                     "The counts of the checks of all creators, if the checks were requested.")};
  }
};

}  // namespace graft::report
