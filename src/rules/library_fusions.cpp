// Reads the fusions of a library of operators, and applies them. A fusion of a library with the operator Swish:
//
//   - match: y = Mul(x, Sigmoid(x))     y = Mul(x, Sigmoid(x))   becomes   y = Swish(x)
//     with: Swish
#include "rules/library_fusions.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "rules/replace/new_node.hpp"

namespace graft::rules {
namespace {

/// Returns whether the text of a file of rules is empty or consists only of comments.
bool is_empty(const char* text) {
  try {
    return YAML::Load(text).IsNull();
  } catch (const YAML::Exception&) {
    return false;  // parse_rules reports the error and its place
  }
}

void check(const Rule& rule, const OperatorLibrary& library) {
  if (rule.kind != Rule::Kind::match)
    fail_at(rule.place, fmt::format("a fusion of a library must be a rule `match`; pass other rules with {}",
                                    setting_name(Setting::rules)));
  if (rule.changes_result || !rule.prove || rule.optional || rule.stage != Rule::Stage::before || rule.int8) {
    fail_at(rule.place,
            "a fusion of a library is always proven and always optional; its only keys are match, with, inputs, "
            "outputs, attributes and reason");
  }
  const auto& own = library.operators;
  if (rule.with.graft != nullptr && std::find(own.begin(), own.end(), rule.with.graft) != own.end()) return;
  fail_at(rule.place, fmt::format("`with` is {}, which is not an operator of this library", rule.with.to_string()));
}

void fuse(Rewriter& rewriter, const Rule& rule, const onnx::Match& match, onnx::Graph& graph) {
  const Region region = region_of(match, graph);
  if (region.outputs.empty()) return;
  std::optional<NewNode> node;
  try {
    node = plan_node(rule, region);
    const InputFacts facts = find_input_facts(*node, graph);
    check_fits(*node, region, facts);
    const int rank = facts.shapes.empty() ? -1 : static_cast<int>(facts.shapes.front().size());
    const FunctionInputs inputs{.dtype = facts.dtypes.at(0), .count = facts.dtypes.size(), .rank = rank};
    const onnx::Value& y = *region.outputs.front();
    const onnx::Value* x = graph.find(node->inputs.front().name);
    if (!rewriter.is_wanted(*node->op, inputs, x == nullptr ? y : *x, y)) return;
  } catch (const Error& error) {
    rewriter.near_miss(rule.pattern->name(), match, error.what());
    return;
  }
  Proposal proposal = propose_node(rule, region, *node);
  proposal.reason = rule.reason.empty() ? std::string(node->with.graft->doc) : rule.reason;
  proposal.place = rule.place.to_string();
  rewriter.apply(proposal);
}

void apply_fusion(Rewriter& rewriter, const Rule& rule) {
  const std::vector<onnx::Graph*> graphs = rewriter.graphs();
  bool has_matched = false;
  for (onnx::Graph* graph : graphs) {
    const onnx::MatchResult result = find_matches(*rule.pattern, *graph);
    for (const onnx::NearMiss& near : result.near_misses) rewriter.near_miss(rule.pattern->name(), near);
    for (const onnx::Match& match : result.matches) fuse(rewriter, rule, match, *graph);
    has_matched = has_matched || !result.matches.empty();
  }
  if (has_matched) return;
  if (const auto nearest = nearest_match(*rule.pattern, graphs)) rewriter.near_miss(rule.pattern->name(), *nearest);
}

}  // namespace

std::vector<Rule> library_fusions(const OperatorLibrary& library) {
  std::vector<Rule> all;
  for (const FusionRules& file : library.fusions) {
    try {
      if (is_empty(file.text)) {
        throw Error(
            fmt::format("{}: the file has no fusion; write one, as in\n- match: y = Mul(x, Sigmoid(x))\n  with: {}\nor "
                        "remove the file",
                        file.file, library.operators.empty() ? "Operator" : library.operators.front()->name));
      }
      for (Rule& rule : parse_rules(file.text, file.file)) {
        check(rule, library);
        all.push_back(std::move(rule));
      }
    } catch (const Error& error) {
      throw Error(fmt::format("library of operators {}: {}", library.file, error.what()));
    }
  }
  return all;
}

void fuse_library_operators(Rewriter& rewriter) {
  for (const OperatorLibrary& library : operator_libraries()) {
    for (const Rule& rule : library_fusions(library)) apply_fusion(rewriter, rule);
  }
}

}  // namespace graft::rules
