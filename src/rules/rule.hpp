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

/// A position in a file of rules; line and column are counted from 1.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  [[nodiscard]] std::string to_string() const;  ///< Returns "rules.yaml:3:5".
};

/// Throws Error with the message "<place>: <message>".
[[noreturn]] void fail_at(const Place& place, const std::string& message);

/// A pattern for names in a rule: an exact name, a name with `*` (any characters) and `?` (one character), or `re:`
/// followed by a regular expression in RE2 syntax, which is matched in time linear in the length of the name.
class NamePattern {
 public:
  NamePattern() = default;
  /// Throws Error, with `place` in the message, if `text` is an invalid regular expression.
  NamePattern(std::string text, Place place);

  [[nodiscard]] bool matches(const std::string& name) const;
  /// Returns `to` with $1, $2 ... replaced by the text that the wildcards or groups of this pattern match in `name`, $0
  /// by `name` and $$ by a dollar sign. Returns `name` unchanged if it does not match.
  [[nodiscard]] std::string renamed(const std::string& name, const std::string& to) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_exact() const { return !expression_; }
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  std::string text_;
  Place place_;
  std::shared_ptr<const re2::RE2> expression_;
};

/// A value in a rule. A string that contains @ is an expression over the matched constants and attributes, see
/// evaluate().
struct RuleValue {
  using Data = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                            std::vector<std::string>>;
  Place place;
  Data data;
  [[nodiscard]] bool is_expression() const;
  [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] bool is_list(const RuleValue::Data& data);
/// Returns the number, or the numbers of a list, or nothing for strings.
[[nodiscard]] std::optional<std::vector<double>> to_numbers(const RuleValue::Data& data);

/// The attributes of a rule with their names, in the order of the file.
using RuleAttributes = std::vector<std::pair<std::string, RuleValue>>;
/// Returns the value of an attribute, or null if the list does not contain it.
[[nodiscard]] const RuleValue* find_attribute(const RuleAttributes& attributes, std::string_view name);

/// Evaluates an arithmetic expression such as `@epsilon`, `1 / @cap`, `-(@alpha + 1) * 2` or `sqrt(@x)`, and returns
/// its value. Operations with lists are elementwise. `value_of` returns the value for the name after an @, or nothing.
/// Throws Error with file, line and column if the expression is invalid or has an unknown name.
[[nodiscard]] RuleValue evaluate(const RuleValue& expression,
                                 const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of);

/// Returns the value as an attribute of `type`, or nothing if it has another type. Integers are converted to
/// floating-point numbers, and a single number to a list, if `type` requires it.
[[nodiscard]] std::optional<AttributeValue> to_attribute(const RuleValue& value, AttributeType type);
/// Returns the value as an attribute of its own type (integer, floating-point number, string or list).
[[nodiscard]] AttributeValue to_attribute(const RuleValue& value);

/// The conditions on an input tensor of a selected node. Empty members accept every tensor.
struct TensorCondition {
  std::optional<onnx::ElementType> dtype;
  std::optional<std::size_t> rank;
  std::optional<std::vector<std::string>> shape;  ///< Sizes, names of dimensions, or "any".
};

/// The conditions that select the nodes of a rule. A node must fulfill all members that are set.
struct Selector {
  std::optional<NamePattern> op;          ///< The operator: "Conv", "my.domain::Thing".
  std::optional<NamePattern> name;        ///< The name of the node or of one of its outputs.
  std::optional<NamePattern> scope;       ///< All nodes below this name make one region.
  std::optional<NamePattern> layer;       ///< A layer of the imported network; its nodes make one region.
  std::optional<NamePattern> layer_type;  ///< The type of such a layer: "Convolution" of Caffe.
  RuleAttributes attributes;
  std::map<std::size_t, TensorCondition> inputs;
};

/// The minimum and maximum number of inputs, and the maximum number of outputs, of an operator.
struct PortCounts {
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
};

/// The operator that a rule inserts: one of Graft, one of ONNX, or a plugin of another library.
struct RuleOperator {
  const OperatorType* graft = nullptr;  ///< Null for operators that are not Graft's.
  std::string domain;
  std::string op_type;
  bool is_plugin = false;  ///< Whether this is a plugin of another library, with version and namespace.
  std::string plugin_version;
  std::string plugin_namespace;
  [[nodiscard]] std::string to_string() const;
  /// Returns the name of the attribute that contains the int8 scale of the operator's first input. Returns an empty
  /// string if the operator is not Graft's or does not support int8. output_scale() returns the attribute for the first
  /// output.
  [[nodiscard]] std::string input_scale() const {
    return graft == nullptr ? "" : std::string(graft->ports.front().scale);
  }
  [[nodiscard]] std::string output_scale() const {
    return graft == nullptr ? "" : std::string(graft->ports[graft->input_count()].scale);
  }
  [[nodiscard]] bool computes_in_int8() const { return !input_scale().empty() && !output_scale().empty(); }
  /// Returns whether the operator belongs neither to Graft nor to ONNX, so that no CPU engine can run it.
  [[nodiscard]] bool is_foreign() const;
  /// Returns ONNX's schema of the operator in the newest opset, or null for operators of other domains.
  [[nodiscard]] const onnx::OperatorSchema* schema() const;
  /// Returns the allowed numbers of inputs and outputs, or nothing for operators that belong neither to Graft nor to
  /// ONNX.
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
    before,     ///< Rules that use the names of the original model; they run before cleanups and fusions.
    after,      ///< Rules that run on the result of the fusions.
  };

  /// An entry of a rule that is a map, such as `rename`: a pattern for names and the new value.
  struct Entry {
    NamePattern name;
    RuleValue value;
  };
  /// The scales of the first input and the first output of a Graft operator that computes in int8. In the file, their
  /// keys are the names of the operator's scale attributes.
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

  Selector select;                               ///< Used by replace, remove and set.
  std::shared_ptr<const onnx::Pattern> pattern;  ///< Used by match.
  RuleOperator with;                             ///< Used by replace and match.
  std::optional<std::vector<RuleValue>> inputs;
  Place inputs_place;  ///< The place of the list of `inputs`.
  std::vector<std::string> outputs;
  RuleAttributes attributes;
  std::optional<Int8> int8;
  std::size_t input = 0;              ///< Used by remove: the index of the input that replaces the node's output.
  std::vector<Entry> entries;         ///< Used by rename, rename_nodes, shape, dtype, fix and constant.
  std::vector<NamePattern> names;     ///< Used by add_outputs and drop_outputs.
  std::vector<NamePattern> from, to;  ///< Used by cut.
  std::string symbol;                 ///< Used by dynamic_batch: the new name of the dimension.
};

/// Returns "; did you mean x?" with the known word that is most similar to `word`, or `otherwise` if none is similar.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                                       std::string_view otherwise = "");

/// Reads a YAML file of rules. Throws Error with file, line and column for invalid YAML, unknown keys and operators
/// (with the most similar known one), attributes that the operator does not have or that have another type, and
/// inconsistent rules.
[[nodiscard]] std::vector<Rule> read_rules(const std::filesystem::path& path);
/// Reads rules from a string. `name` is the name of the file in messages.
[[nodiscard]] std::vector<Rule> parse_rules(const std::string& text, const std::string& name);

/// Returns the shape in an entry of a rule `shape`, a list of fixed sizes and names of dynamic sizes. Throws Error with
/// file, line and column for an invalid dimension.
[[nodiscard]] Shape parse_shape(const RuleValue& value);
/// Returns a dimension: a fixed size if `text` is an integer, otherwise a dynamic size of that name. Throws Error, with
/// `place` in the message, if `text` is neither.
[[nodiscard]] Dim parse_dim(const std::string& text, const Place& place);

}  // namespace graft::rules
