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

/// A pattern, parsed once from text, with one line (or part between `;`) per named node, the root last:
///
///     square = Mul(x, x) | Pow(x, 2)
///     sum    = ReduceSum(square, @axes){keepdims=1}
///     norm   = Sqrt(Max(sum, @epsilon))
///     y      = Div(x, Expand(norm, Shape(x)) | norm)
///
/// A name from an earlier line stands for that node and must be the same value wherever it occurs. Any other name binds
/// a value, the same value everywhere. `_` binds nothing and matches any value. `@name` binds a constant, the same one
/// everywhere. A number matches a constant of one element with that value. `a | b` matches either, and may stand in
/// parentheses. `x?` may be absent; inputs that the pattern does not list must be absent. `Op(...){attr=1, mode="max",
/// axes=[1], alpha=@alpha}` sets conditions on attributes, or binds them; ONNX's defaults count, and an attribute that
/// is not mentioned may have any value. `*` as the last argument matches any further inputs. `domain::Op` names another
/// domain. `a, b = Split(x)` names several outputs; a match is searched at the first output of the root.
///
/// Add, Mul, Max, Min, Sum, And, Or, Xor and Equal with two inputs are tried in both orders. Where older opsets have an
/// attribute and newer ones an input (axes, min and max of Clip, pads, split, starts and ends), the position of the
/// input stands for both. Identity, Dropout outside training, and Cast to the type that a value already has are
/// skipped. A match fails if an inner value is used outside the match or is a graph output; only Shape, which costs
/// nothing, may be shared.
class Pattern {
 public:
  /// How a pattern uses the name of a constant, `@name`. `places` is the number of its occurrences.
  struct Capture {
    int places = 0;
    /// Whether `@name` is the value of an attribute in braces, as in {alpha=@name}, and no opset has this attribute as
    /// an input.
    bool of_attribute = false;
  };

  /// Parses a pattern named `name`. Throws Error with line and column for a text that is not a pattern; the message
  /// names the text `what` or, if `what` is empty, the pattern.
  explicit Pattern(std::string_view text, std::string name = "pattern", const std::string& what = "");
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the op_types that the root can have, so that callers can skip other nodes.
  [[nodiscard]] const std::vector<std::string>& root_types() const;
  /// Returns the names that may occur in Match::values; constant_names() returns those that may occur in
  /// Match::constants.
  [[nodiscard]] const std::set<std::string, std::less<>>& value_names() const;
  [[nodiscard]] const std::map<std::string, Capture, std::less<>>& constant_names() const;

  struct Data;
  [[nodiscard]] const Data& data() const { return *data_; }

 private:
  std::string name_;
  std::unique_ptr<Data> data_;
};

/// The nodes, values and constants to which a pattern's names are bound.
struct Match {
  Node* root = nullptr;
  std::map<std::string, Value*, std::less<>> values;  ///< The values of free names, and the outputs of named nodes.
  /// The nodes of lines that have a name. A name is missing if an alternative matched that does not contain it.
  std::map<std::string, Node*, std::less<>> named_nodes;
  /// The values of `@name`, from constants and attributes, including strings.
  std::map<std::string, TensorData, std::less<>> constants;
  std::vector<Node*> nodes;  ///< All matched nodes, in topological order.

  [[nodiscard]] bool has(std::string_view name) const;
  /// Returns the value of a name. Throws Error (internal) for a name that is not bound.
  [[nodiscard]] Value& value(std::string_view name) const;
  [[nodiscard]] std::optional<double> scalar(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;  ///< Returns a bound string attribute.
};

/// The attempt to match the pattern that matched the most nodes. `--explain` reports it.
struct NearMiss {
  Node* node = nullptr;  ///< The node that was compared with the pattern's root.
  std::size_t matched_nodes = 0;
  std::size_t pattern_nodes = 0;  ///< The number of nodes in the pattern; of alternatives, the largest counts.
  /// Why the match failed, such as "node 'Pow_3' (Pow): input 1 is 3; the pattern needs 2".
  std::string reason;
};

/// Matches the pattern with `root` as its last node. If the match fails and `near` is given, stores in `near` how many
/// nodes matched, and why the next one did not.
[[nodiscard]] std::optional<Match> match(const Pattern& pattern, Node& root, NearMiss* near = nullptr);

/// The matches in a graph without its subgraphs, no two of which share a node, and the near misses in which at least
/// two nodes matched.
struct MatchResult {
  std::vector<Match> matches;
  std::vector<NearMiss> near_misses;
};
[[nodiscard]] MatchResult find_matches(const Pattern& pattern, Graph& graph);

/// Returns the closest attempt to match a pattern that has no match in these graphs. Nodes are first compared with the
/// root of the pattern. If fewer than two nodes match there, nodes are compared with calls inside the pattern, and the
/// attempt in which the most nodes match is returned. Returns nothing if no node has the type of the root and no inner
/// call matches two nodes.
[[nodiscard]] std::optional<NearMiss> nearest_match(const Pattern& pattern, std::span<Graph* const> graphs);

}  // namespace graft::onnx
