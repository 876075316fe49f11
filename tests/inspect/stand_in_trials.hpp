// A stand-in for TensorRT's trials, whose results depend on the operators of a model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/trials.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

class StandInTrials final : public Trials {
 public:
  std::set<std::string, std::less<>> refused;   ///< Operators that the parser refuses, naming the node.
  std::set<std::string, std::less<>> failing;   ///< Operators that the builder fails on.
  std::set<std::string, std::less<>> crashing;  ///< Operators that end the process in the build.
  std::set<std::string, std::less<>> together;  ///< Operators on which the builder fails where all are in one model.
  bool names_failing = false;                   ///< The builder's message names the node.
  /// Whether the builder fails on a model for these ranges; never if empty.
  std::function<bool(const onnx::Model&, const BuildRanges&)> fails_for;
  std::size_t max_builds = 1000;
  std::size_t builds = 0;
  std::size_t parses = 0;
  std::size_t largest_build = 0;  ///< Nodes of the largest model that was built.

  [[nodiscard]] const nlohmann::json& creators() const override { return creators_; }
  [[nodiscard]] bool is_spent() const override { return false; }

  [[nodiscard]] Trial parse(const onnx::Model& model) override {
    ++parses;
    return parsed(model);
  }

  [[nodiscard]] Trial build(const onnx::Model& model, const BuildRanges& ranges, double /*share*/) override {
    if (builds == max_builds) throw BudgetSpent{"the budget is spent"};
    ++builds;
    largest_build = std::max(largest_build, model.graph().node_count());
    if (Trial trial = parsed(model); trial.outcome != Outcome::accepted) return trial;
    std::set<std::string, std::less<>> found;
    for (const onnx::Node* node : std::as_const(model).graph().nodes()) {
      found.insert(node->op_type);
      if (crashing.contains(node->op_type)) {
        return {.outcome = Outcome::crashed, .answer = {{"signal", "SIGSEGV"}, {"last_messages", {"building"}}}};
      }
      if (failing.contains(node->op_type)) return failed(names_failing ? node->name : "some layer");
    }
    const bool has_all =
        !together.empty() && std::includes(found.begin(), found.end(), together.begin(), together.end());
    if (fails_for && fails_for(model, ranges)) {
      Trial trial = failed("some sizes");
      for (const auto& [name, range] : *ranges.suggested) trial.answer["ranges"].push_back(name + "=" + range.sizes);
      return trial;
    }
    return has_all ? failed("some layers") : accepted();
  }

 private:
  static Trial accepted() { return {.outcome = Outcome::accepted, .answer = {{"plugins", nlohmann::json::array()}}}; }

  static Trial failed(const std::string& what) {
    const nlohmann::json message = {{"severity", "error"}, {"message", "Could not build " + what}};
    return {.outcome = Outcome::failed, .answer = {{"messages", {message}}}};
  }

  [[nodiscard]] Trial parsed(const onnx::Model& model) const {
    nlohmann::json errors = nlohmann::json::array();
    for (const onnx::Node* node : model.graph().nodes()) {
      if (!refused.contains(node->op_type)) continue;
      errors.push_back({{"node", node->name},
                        {"op_type", node->op_type},
                        {"message", "no importer"},
                        {"code", "kUNSUPPORTED_NODE"},
                        {"function", "parseNode"}});
    }
    if (errors.empty()) return accepted();
    return {.outcome = Outcome::refused, .answer = {{"errors", errors}}};
  }

  nlohmann::json creators_ = nlohmann::json::array();
};

}  // namespace graft::inspect
