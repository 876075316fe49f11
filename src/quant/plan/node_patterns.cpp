// Matches names of nodes with shell patterns.
#include "quant/plan/node_patterns.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/shell_quoted.hpp"
#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/operator_node.hpp"
#include "quant/plan/typed.hpp"

namespace graft::quant {
namespace {

std::string operator_name(const onnx::Node& node) {
  const onnx::OperatorMatch match = find_operator_for(node);
  return match ? std::string(match.type->name) : node.op_type;
}

bool matches_pattern(const std::string& pattern, const onnx::Node& node) {
  const auto fits = [&](const std::string& text) { return fnmatch(pattern.c_str(), text.c_str(), 0) == 0; };
  return fits(node.name) || fits(operator_name(node)) ||
         std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const onnx::Value* value) { return value != nullptr && fits(value->name); });
}

void check_patterns(Setting setting, const std::vector<std::string>& patterns, const onnx::Model& model) {
  const std::vector<onnx::Node*> nodes = model.graph().nodes();
  for (const std::string& pattern : patterns) {
    if (std::any_of(nodes.begin(), nodes.end(),
                    [&](const onnx::Node* node) { return matches_pattern(pattern, *node); })) {
      continue;
    }
    std::vector<std::string> names;
    for (const onnx::Node* node : nodes) names.insert(names.end(), {node->name, operator_name(*node), key_of(*node)});
    const auto meant = nearest(pattern, names);
    throw Error(
        fmt::format("{}: {} {}: no node, tensor or operator has this name{}\n`graft inspect {}` lists the nodes",
                    model.source, setting_name(setting), pattern,
                    meant ? fmt::format("; did you mean {}?", *meant) : "", shell_path(model.source)));
  }
}

}  // namespace

std::map<std::string, std::string, std::less<>> kept_by_patterns(
    const onnx::Model& model, const std::vector<std::string>& keep, const std::vector<std::string>& only,
    const std::function<bool(const onnx::Node&)>& may_change) {
  check_patterns(Setting::keep, keep, model);
  check_patterns(Setting::only, only, model);
  std::map<std::string, std::string, std::less<>> kept;
  for (const onnx::Node* node : model.graph().nodes()) {
    const auto fits = [&](const std::string& pattern) { return matches_pattern(pattern, *node); };
    const auto named = std::find_if(keep.begin(), keep.end(), fits);
    if (named != keep.end()) {
      kept.emplace(key_of(*node), fmt::format("{} {}", setting_name(Setting::keep), *named));
    } else if (!only.empty() && may_change(*node) && std::none_of(only.begin(), only.end(), fits)) {
      kept.emplace(key_of(*node), fmt::format("not selected by {}", setting_name(Setting::only)));
    }
  }
  return kept;
}

}  // namespace graft::quant
