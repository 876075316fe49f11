// Functions that the fusion passes share: match a pattern, read an operator from the match, propose the rewrite.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/operator.hpp"
#include "onnx/matcher.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

/// The result of reading a match: the operator that replaces it, or in `obstacle` the first condition on its constants,
/// types and shapes that does not hold. Exactly one of the two is set.
struct Fusion {
  std::shared_ptr<Operator> op;
  std::string obstacle;

  Fusion(std::shared_ptr<Operator> found) : op(std::move(found)) {}  // NOLINT(google-explicit-constructor)
  Fusion(std::string reason) : obstacle(std::move(reason)) {}        // NOLINT(google-explicit-constructor)
};

/// Replaces each match of `pattern` in `graph` by the operator that `read` returns for it. If `read` returns an
/// obstacle instead, the node is not changed, and the report lists the match with the obstacle as a near miss. The only
/// input of the pattern must be named x. `why` is the reason for the rewrite in the report.
void fuse(Rewriter& rewriter, onnx::Graph& graph, const onnx::Pattern& pattern, std::string_view why,
          const std::function<Fusion(const onnx::Match&)>& read);

/// Returns why the input x of a match does not fit the kernels of the operator `op_name`, or an empty string if it
/// fits. The conditions are: Graft's kernels support its type, its rank is known, and the result has the same rank (a
/// constant with more dimensions would raise it).
[[nodiscard]] std::string obstacle_of_x(const onnx::Match& match, std::string_view op_name);

/// Returns whether it is useful to replace the nodes that compute y from x by the operator `op`: TensorRT must have a
/// native layer for it, or build plugins in the graph of y. Rewriter::is_wanted describes the details. `inputs` is the
/// number of inputs of the operator.
[[nodiscard]] bool is_wanted(Rewriter& rewriter, const Operator& op, const onnx::Value& x, const onnx::Value& y,
                             std::size_t inputs = 1);

/// Returns the nodes that compute y from `inputs` and constants, in topological order. Returns nothing, and sets
/// `why_not` to a reason for the user, if y depends on any other value, or if a node that is not returned reads a
/// result of these nodes other than y. Two kinds of results may be read by other nodes, and their nodes then stay in
/// the graph: integers (numbers computed from shapes), and results of nodes for which `may_stay` returns true. If
/// `may_stay` is null, it counts as false for all nodes.
[[nodiscard]] std::optional<std::vector<onnx::Node*>> nodes_between(const std::vector<const onnx::Value*>& inputs,
                                                                    const onnx::Value& y, std::string& why_not,
                                                                    bool (*may_stay)(const onnx::Node&) = nullptr);

}  // namespace graft::passes
