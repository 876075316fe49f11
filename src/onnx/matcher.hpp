// A declarative pattern matcher for sub-graphs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// A pattern, parsed once from text. One line (or part between `;`) per named node, the root last:
///
///   square = Mul(x, x) | Pow(x, 2)
///   sum    = ReduceSum(square, @axes){keepdims=1}
///   norm   = Sqrt(Max(sum, @epsilon))
///   y      = Div(x, Expand(norm, Shape(x)) | norm)
///
/// A name from an earlier line stands for that node: everywhere it occurs it must be the same value. Another name binds
/// a value, the same value everywhere. `_` binds nothing and takes any value. `@name` binds a constant, the same one
/// everywhere. A number takes a constant of one element with that value. `a | b` takes either, and may stand in
/// parentheses. `x?` may be absent; inputs that the pattern does not list must be absent. `Op(...){attr=1, mode="max",
/// axes=[1], alpha=@alpha}` sets conditions on attributes, or binds them; ONNX's defaults count, and an attribute that
/// is not mentioned may have any value. `*` as the last argument takes any further inputs. `domain::Op` names another
/// domain. `a, b = Split(x)` names several outputs; the root's first output is what is matched.
///
/// Add, Mul, Max, Min, Sum, And, Or, Xor and Equal with two inputs are tried in both orders. Where older operator sets
/// have an attribute and newer ones an input (axes, min and max of Clip, pads, split, starts and ends), the input's
/// place serves for both. Identity, Dropout outside training, and Cast to the type it has already are looked through.
/// An inner value that is used outside the match or is a graph output makes the match fail; Shape, which costs nothing,
/// may be shared.
class Pattern {
 public:
  /// Where a pattern has `@name`.
  struct Capture {
    int places = 0;
    bool of_attribute = false;  ///< In braces in one of them, of an attribute that no operator set has as an input.
  };

  /// Throws Error naming line and column of `what`, or of the pattern by its name where `what` is empty.
  explicit Pattern(std::string_view text, std::string name = "pattern", const std::string& what = "");
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The op_types that the root can have; for looking only at nodes that can match.
  [[nodiscard]] const std::vector<std::string>& root_types() const;
  /// The names that a match can have in `values`, and in `constants`.
  [[nodiscard]] const std::set<std::string, std::less<>>& value_names() const;
  [[nodiscard]] const std::map<std::string, Capture, std::less<>>& constant_names() const;

  struct Data;
  [[nodiscard]] const Data& data() const { return *data_; }

 private:
  std::string name_;
  std::unique_ptr<Data> data_;
};

/// What a pattern's names stand for.
struct Match {
  Node* root = nullptr;
  std::map<std::string, Value*, std::less<>> values;         ///< Free names and outputs of named nodes.
  std::map<std::string, Node*, std::less<>> named_nodes;     ///< Absent where another alternative matched.
  std::map<std::string, TensorData, std::less<>> constants;  ///< `@name`, from constants and attributes; strings too.
  std::vector<Node*> nodes;                                  ///< All that were matched, in topological order.

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] Value& value(std::string_view name) const;  ///< Throws Error (internal) for an unbound name.
  [[nodiscard]] std::optional<double> scalar(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;  ///< A bound text attribute.
};

/// The furthest that an attempt came, for --explain.
struct NearMiss {
  Node* node = nullptr;  ///< Where the root was tried.
  std::size_t matched_nodes = 0;
  std::size_t pattern_nodes = 0;  ///< That the pattern has in all, alternatives counted once.
  std::string reason;             ///< "node 'Pow_3' (Pow): input 1 is 3, the pattern wants 2"
};

/// Matches with `root` as the pattern's last node. Where it fails and `near` is given, says how far it came.
[[nodiscard]] std::optional<Match> match(const Pattern& pattern, Node& root, NearMiss* near = nullptr);

/// All matches in the graph, sub-graphs not included, none sharing a node with another; and what nearly matched: at
/// least two nodes did.
struct MatchResult {
  std::vector<Match> matches;
  std::vector<NearMiss> near_misses;
};
[[nodiscard]] MatchResult find_matches(const Pattern& pattern, Graph& graph);

/// What comes nearest to a pattern that matches nowhere in these graphs: a node at which the pattern's last one was
/// tried or, where hardly anything was before that, one at which a part of the pattern matches. Nothing where the
/// graphs have neither.
[[nodiscard]] std::optional<NearMiss> nearest_match(const Pattern& pattern, std::span<Graph* const> graphs);

}  // namespace graft::onnx
