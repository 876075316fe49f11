// The rules that a user writes for a model: what they say, read from YAML and checked as far as that goes without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graft/operator.hpp"
#include "onnx/matcher.hpp"
#include "onnx/tensor_data.hpp"

namespace re2 {
class RE2;
}

namespace graft::passes {

/// A place in a file of rules.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  [[nodiscard]] std::string to_string() const;  ///< "rules.yaml:3:5"
};

/// A name as a rule writes it: exact, with `*` for any characters and `?` for one, or a regular expression after `re:`,
/// in RE2's syntax, whose matching takes time linear in the name.
class NamePattern {
 public:
  NamePattern() = default;
  /// Throws Error naming the place for a regular expression that is none.
  NamePattern(std::string text, Place place);

  [[nodiscard]] bool matches(const std::string& name) const;
  /// What `to` becomes for a name that matches: $1 is what the first `*`, `?` or group took, $0 the name, $$ a dollar.
  [[nodiscard]] std::string renamed(const std::string& name, const std::string& to) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_exact() const { return !expression_; }
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  std::string text_;
  Place place_;
  std::shared_ptr<const re2::RE2> expression_;
};

/// A value as a rule writes it. A text with an @ is an expression over what was matched, see evaluate.
struct RuleValue {
  using Data = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                            std::vector<std::string>>;
  Place place;
  Data data;
  [[nodiscard]] bool is_expression() const;
  [[nodiscard]] std::string to_string() const;
};

/// `@epsilon`, `1 / @cap`, `-(@alpha + 1) * 2`, `sqrt(@x)`: arithmetic, element by element where lists take part.
/// `value_of` gives what a name stands for. Throws Error naming the place.
[[nodiscard]] RuleValue evaluate(const RuleValue& expression,
                                 const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of);

/// What an attribute of that type takes; nothing where the value is of another type. Whole numbers serve as real ones,
/// one number as a list of one.
[[nodiscard]] std::optional<AttributeValue> to_attribute(const RuleValue& value, AttributeType type);
/// The same without a type that is known: as it is written.
[[nodiscard]] AttributeValue to_attribute(const RuleValue& value);

/// What a tensor has to be.
struct TensorCondition {
  std::optional<onnx::ElementType> dtype;
  std::optional<std::size_t> rank;
  std::optional<std::vector<std::string>> shape;  ///< Sizes, names of dimensions, or "any".
};

/// Which nodes a rule is about: all that is given has to hold.
struct Selector {
  std::optional<NamePattern> op;          ///< "Conv", "my.domain::Thing".
  std::optional<NamePattern> name;        ///< Of the node or of one of its outputs.
  std::optional<NamePattern> scope;       ///< All nodes below this name make one region.
  std::optional<NamePattern> layer;       ///< Of the network that was imported; its nodes make one region.
  std::optional<NamePattern> layer_type;  ///< The same, "Convolution" of Caffe.
  std::vector<std::pair<std::string, RuleValue>> attributes;
  std::map<std::size_t, TensorCondition> inputs;
};

/// How many inputs and outputs a node may have.
struct PortCounts {
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
};

/// The operator that comes.
struct RuleOperator {
  const OperatorType* graft = nullptr;  ///< Null for operators that are not Graft's.
  std::string domain;
  std::string op_type;
  bool is_plugin = false;  ///< Of somebody else's library, with version and name space.
  std::string plugin_version;
  std::string plugin_namespace;
  [[nodiscard]] std::string to_string() const;
  /// The attributes with the scales of the first input and output; empty where Graft does not store those in 8 bits.
  [[nodiscard]] std::string input_scale() const {
    return graft == nullptr ? "" : std::string(graft->ports.front().scale);
  }
  [[nodiscard]] std::string output_scale() const {
    return graft == nullptr ? "" : std::string(graft->ports[graft->input_count()].scale);
  }
  [[nodiscard]] bool computes_in_int8() const { return !input_scale().empty() && !output_scale().empty(); }
  /// Nothing for operators that are neither Graft's nor ONNX's.
  [[nodiscard]] std::optional<PortCounts> port_counts() const;
};

struct Rule {
  enum class Kind : std::uint8_t {
    replace,
    match,
    remove,
    set,
    constant,
    rename,
    rename_nodes,
    shape,
    dtype,
    fix,
    dynamic_batch,
    add_outputs,
    drop_outputs,
    cut,
  };
  enum class Stage : std::uint8_t {
    interface,  ///< Before everything else: names, shapes, inputs and outputs.
    before,     ///< In the names of the original, before anything is cleaned up or fused.
    after,      ///< On what the fusions left.
  };

  /// One line of a rule that is a table: a name and what it gets.
  struct Entry {
    NamePattern name;
    RuleValue value;
  };
  /// Scales of the first input and output, for the operators of Graft that compute in int8. A rule has them under the
  /// names of the attributes in which those ports have theirs.
  struct Int8 {
    double input_scale = 1;
    double output_scale = 1;
  };

  Place place;
  Kind kind = Kind::replace;
  Stage stage = Stage::before;
  std::string text;  ///< For people: "replace scope `a/l2_normalize` by graft::L2Normalize".
  bool optional = false;
  bool changes_result = false;
  bool prove = true;
  std::string reason;

  Selector select;                               ///< replace, remove, set; of `match` what its last node has to be.
  std::shared_ptr<const onnx::Pattern> pattern;  ///< match
  RuleOperator with;                             ///< replace, match
  std::optional<std::vector<RuleValue>> inputs;
  std::vector<std::string> outputs;
  std::vector<std::pair<std::string, RuleValue>> attributes;
  std::optional<Int8> int8;
  std::size_t input = 0;              ///< remove: which one takes the node's place.
  std::vector<Entry> entries;         ///< rename, rename_nodes, shape, dtype, fix, constant
  std::vector<NamePattern> names;     ///< add_outputs, drop_outputs
  std::vector<NamePattern> from, to;  ///< cut
  std::string symbol;                 ///< dynamic_batch
};

/// "; did you mean x?", or what stands there where nothing known is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                                       std::string_view otherwise = "");

/// Reads a file of rules. Throws Error naming file, line and column: text that is no YAML, unknown keys and operators,
/// with the nearest known one, attributes that an operator does not have or of another type, what contradicts itself.
[[nodiscard]] std::vector<Rule> read_rules(const std::filesystem::path& path);
/// The same from memory; `name` is for messages.
[[nodiscard]] std::vector<Rule> parse_rules(const std::string& text, const std::string& name);

/// The shapes that rules of the kind `shape` give, for readers that need them while they read.
[[nodiscard]] std::map<std::string, Shape, std::less<>> shapes_of(const std::vector<Rule>& rules);
/// One dimension as it is written: a size, or a name. Throws Error naming the place.
[[nodiscard]] Dim parse_dim(const std::string& text, const Place& place);

}  // namespace graft::passes
