// What the fusion passes share: find a pattern, read an operator off it, propose the change.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator.hpp"
#include "onnx/matcher.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

/// The operator that a match stands for, or the first condition on its constants, types and shapes that does not hold.
struct Fusion {
  std::shared_ptr<Operator> op;
  std::string obstacle;

  Fusion(std::shared_ptr<Operator> found) : op(std::move(found)) {}  // NOLINT(google-explicit-constructor)
  Fusion(std::string reason) : obstacle(std::move(reason)) {}        // NOLINT(google-explicit-constructor)
};

/// Replaces each match, whose only input is called x, by the operator that `read` finds in it.
void fuse(Rewriter& rewriter, onnx::Graph& graph, const onnx::Pattern& pattern, std::string_view why,
          const std::function<Fusion(const onnx::Match&)>& read);

/// Conditions on x that all fusions of floating-point operators have: a type that Graft's kernels have, and a result of
/// the rank of x, which no constant of more dimensions raises. Empty where they hold.
[[nodiscard]] std::string obstacle_of_x(const onnx::Match& match, std::string_view op_name);

/// Whether a fusion of what computes y from x into `op` with so many inputs leads anywhere, see Rewriter::is_wanted.
[[nodiscard]] bool is_wanted(Rewriter& rewriter, const Operator& op, const onnx::Value& x, const onnx::Value& y,
                             std::size_t inputs = 1);

/// The nodes that make y from `inputs` and constants, in topological order. Nothing where y depends on something else,
/// or where an inner value that is no number of a shape is needed elsewhere; `why_not` then says so. What nodes of
/// which `may_stay` is true make may be needed elsewhere: they stay then.
[[nodiscard]] std::optional<std::vector<onnx::Node*>> nodes_between(const std::vector<const onnx::Value*>& inputs,
                                                                    const onnx::Value& y, std::string& why_not,
                                                                    bool (*may_stay)(const onnx::Node&) = nullptr);

}  // namespace graft::passes
