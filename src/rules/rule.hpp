// The rules that a user writes for a model: their content, read from YAML and checked as far as possible without a
// model.
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

#include "graft/operator/operator.hpp"
#include "onnx/matcher.hpp"
#include "onnx/tensor_data.hpp"

namespace re2 {
class RE2;
}

namespace graft::onnx {
struct OperatorSchema;
}

namespace graft::rules {

/// A place in a file of rules.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  [[nodiscard]] std::string to_string() const;  ///< Returns "rules.yaml:3:5".
};

/// Throws Error with the place before the message.
[[noreturn]] void fail_at(const Place& place, const std::string& message);

/// A name as a rule writes it: exact, with `*` for any characters and `?` for one, or a regular expression after `re:`,
/// in RE2's syntax, whose matching takes time linear in the name.
class NamePattern {
 public:
  NamePattern() = default;
  /// Throws Error naming the place for an invalid regular expression.
  NamePattern(std::string text, Place place);

  [[nodiscard]] bool matches(const std::string& name) const;
  /// Returns the new name for a name that matches: `to`, in which $1 is the match of the first `*`, `?` or group, $0
  /// the name, and $$ a dollar. A name that does not match is returned unchanged.
  [[nodiscard]] std::string renamed(const std::string& name, const std::string& to) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_exact() const { return !expression_; }
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  std::string text_;
  Place place_;
  std::shared_ptr<const re2::RE2> expression_;
};

/// A value as a rule writes it. A string with an @ is an expression over what was matched, see evaluate.
struct RuleValue {
  using Data = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                            std::vector<std::string>>;
  Place place;
  Data data;
  [[nodiscard]] bool is_expression() const;
  [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] bool is_list(const RuleValue::Data& data);
/// Returns the numbers in a value, which is a number or a list, or nothing for strings.
[[nodiscard]] std::optional<std::vector<double>> to_numbers(const RuleValue::Data& data);

/// Attributes by name, in the order of the file.
using RuleAttributes = std::vector<std::pair<std::string, RuleValue>>;
/// Returns the value of an attribute; null if the list does not have the attribute.
[[nodiscard]] const RuleValue* find_attribute(const RuleAttributes& attributes, std::string_view name);

/// Evaluates an expression such as `@epsilon`, `1 / @cap`, `-(@alpha + 1) * 2` or `sqrt(@x)`: arithmetic, element by
/// element where lists take part. `value_of` returns the value of a name. Throws Error naming the place.
[[nodiscard]] RuleValue evaluate(const RuleValue& expression,
                                 const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of);

/// Returns the value as an attribute of `type`, or nothing if the value is of another type. Integers serve as
/// floating-point numbers, one number as a list of one.
[[nodiscard]] std::optional<AttributeValue> to_attribute(const RuleValue& value, AttributeType type);
/// Returns the value as an attribute of the type in which it is written.
[[nodiscard]] AttributeValue to_attribute(const RuleValue& value);

/// Conditions on a tensor.
struct TensorCondition {
  std::optional<onnx::ElementType> dtype;
  std::optional<std::size_t> rank;
  std::optional<std::vector<std::string>> shape;  ///< Sizes, names of dimensions, or "any".
};

/// The conditions that select the nodes of a rule: all that are given must hold.
struct Selector {
  std::optional<NamePattern> op;          ///< The operator: "Conv", "my.domain::Thing".
  std::optional<NamePattern> name;        ///< The name of the node or of one of its outputs.
  std::optional<NamePattern> scope;       ///< All nodes below this name make one region.
  std::optional<NamePattern> layer;       ///< A layer of the imported network; its nodes make one region.
  std::optional<NamePattern> layer_type;  ///< The type of such a layer: "Convolution" of Caffe.
  RuleAttributes attributes;
  std::map<std::size_t, TensorCondition> inputs;
};

/// The number of inputs and outputs that a node may have.
struct PortCounts {
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
};

/// The operator that a rule inserts.
struct RuleOperator {
  const OperatorType* graft = nullptr;  ///< Null for operators that are not Graft's.
  std::string domain;
  std::string op_type;
  bool is_plugin = false;  ///< Whether this is a plugin of another library, with version and namespace.
  std::string plugin_version;
  std::string plugin_namespace;
  [[nodiscard]] std::string to_string() const;
  /// Returns the attribute that holds the scale of the first input, or of the first output below; empty if Graft does
  /// not store that tensor in 8 bits.
  [[nodiscard]] std::string input_scale() const {
    return graft == nullptr ? "" : std::string(graft->ports.front().scale);
  }
  [[nodiscard]] std::string output_scale() const {
    return graft == nullptr ? "" : std::string(graft->ports[graft->input_count()].scale);
  }
  [[nodiscard]] bool computes_in_int8() const { return !input_scale().empty() && !output_scale().empty(); }
  /// Returns whether the operator is neither Graft's nor ONNX's, so that no CPU engine has it.
  [[nodiscard]] bool is_foreign() const;
  /// Returns ONNX's schema in the newest operator set; null for operators of other domains.
  [[nodiscard]] const onnx::OperatorSchema* schema() const;
  /// Returns nothing for operators that are neither Graft's nor ONNX's.
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
    interface,  ///< Rules about names, shapes, inputs and outputs, which run before everything else.
    before,     ///< Rules in the names of the original, which run before anything is cleaned up or fused.
    after,      ///< Rules that run on the result of the fusions.
  };

  /// An entry of a rule that is a table: a name and its new value.
  struct Entry {
    NamePattern name;
    RuleValue value;
  };
  /// The scales of the first input and output, for Graft operators that compute in int8. In a rule they have the names
  /// of the attributes that hold the scales of these ports.
  struct Int8 {
    double input_scale = 1;
    double output_scale = 1;
  };

  Place place;
  Kind kind = Kind::replace;
  Stage stage = Stage::before;
  std::string text;  ///< A description: "replace scope `a/l2_normalize` with graft::L2Normalize".
  bool optional = false;
  bool changes_result = false;
  bool prove = true;
  std::string reason;

  Selector select;                               ///< replace, remove, set
  std::shared_ptr<const onnx::Pattern> pattern;  ///< match
  RuleOperator with;                             ///< replace, match
  std::optional<std::vector<RuleValue>> inputs;
  Place inputs_place;  ///< The place of the list of `inputs`.
  std::vector<std::string> outputs;
  RuleAttributes attributes;
  std::optional<Int8> int8;
  std::size_t input = 0;              ///< remove: the index of the input that replaces the node's output
  std::vector<Entry> entries;         ///< rename, rename_nodes, shape, dtype, fix, constant
  std::vector<NamePattern> names;     ///< add_outputs, drop_outputs
  std::vector<NamePattern> from, to;  ///< cut
  std::string symbol;                 ///< dynamic_batch
};

/// Returns "; did you mean x?", or `otherwise` if no known word is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                                       std::string_view otherwise = "");

/// Reads a file of rules. Throws Error naming file, line and column for text that is not YAML, unknown keys and
/// operators, with the nearest known one, attributes that an operator does not have or of another type, and rules that
/// contradict themselves.
[[nodiscard]] std::vector<Rule> read_rules(const std::filesystem::path& path);
/// Reads rules from a string. `name` is the name of the file in messages.
[[nodiscard]] std::vector<Rule> parse_rules(const std::string& text, const std::string& name);

/// Returns the shape that an entry of a rule of the kind `shape` sets.
[[nodiscard]] Shape parse_shape(const RuleValue& value);
/// Returns one dimension as it is written: a size, or a name. Throws Error naming the place.
[[nodiscard]] Dim parse_dim(const std::string& text, const Place& place);

}  // namespace graft::rules
