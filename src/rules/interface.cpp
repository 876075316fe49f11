// Pass rules_interface: applies the user's rules about names, shapes, inputs and outputs.
//
//   - fix: {N: 1}             input [N, 3, 224, 224]   becomes   [1, 3, 224, 224]
//   - rename: {old: new}      tensor 'old'             becomes   tensor 'new'
//   - cut: {to: features}     the model                becomes   the part that 'features' needs
//
// The part that remains computes what it did: a network with new shapes only has to run, and one whose batch becomes
// dynamic is compared with the original.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/text.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"
#include "rules/regions.hpp"
#include "rules/rule_passes.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/verify_models.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::rules {
namespace {

using Kind = Rule::Kind;

/// Infers shapes and types again from the inputs. Types that only the file declares are kept.
void infer_again(onnx::Model& model) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->shape) shapes.emplace(input->name, *input->shape);
  }
  std::map<std::string, onnx::ElementType> types;
  for (const onnx::Value* value : model.graph().values()) {
    if (value->type) types.emplace(value->name, *value->type);
  }
  infer_shapes(model, shapes);
  for (onnx::Value* value : model.graph().values()) {
    const auto known = types.find(value->name);
    if (!value->type && known != types.end()) value->type = known->second;
  }
}

Dim with_symbol(const Dim& dim, const std::string& symbol, const Dim& size) {
  if (dim.is_constant()) return dim;
  if (dim.kind() == Dim::Kind::symbol) return dim.name() == symbol ? size : dim;
  return Dim::make(dim.kind(), with_symbol(dim.left(), symbol, size), with_symbol(dim.right(), symbol, size));
}

/// Concatenates the tensors of both maps along the first axis.
runtime::TensorMap join_tensors(const runtime::TensorMap& first, const runtime::TensorMap& second) {
  runtime::TensorMap result;
  for (const auto& [name, a] : first) {
    const onnx::TensorData& b = second.at(name);
    if (a.dims.empty() || bits_of(a.type) < 8) {
      throw Error(fmt::format("'{}' has no batch dimension, or its elements are smaller than a byte", name));
    }
    onnx::TensorData both;
    both.type = a.type;
    both.dims = a.dims;
    both.dims[0] += b.dims[0];
    both.bytes = onnx::Bytes(std::string(a.bytes.view()) + std::string(b.bytes.view()));
    result.emplace(name, std::move(both));
  }
  return result;
}

class InterfaceRule {
 public:
  InterfaceRule(Rewriter& rewriter, const Rule& rule)
      : rewriter_(rewriter), rule_(rule), outcome_(begin_outcome(rule)) {}

  RuleOutcome run() {
    switch (rule_.kind) {
      case Kind::rename: rename(); break;
      case Kind::rename_nodes: rename_nodes(); break;
      case Kind::shape: set_shapes(); break;
      case Kind::dtype: set_types(); break;
      case Kind::fix: fix(); break;
      case Kind::dynamic_batch: make_batch_dynamic(); break;
      case Kind::add_outputs: add_outputs(); break;
      case Kind::drop_outputs: drop_outputs(); break;
      default: cut(); break;
    }
    return std::move(outcome_);
  }

 private:
  onnx::Graph& graph() { return rewriter_.model().graph(); }

  [[noreturn]] static void fail(const Place& place, const std::string& message) {
    throw Error(fmt::format("{}: {}", place.to_string(), message));
  }

  void done(Rewriter::Subject what, std::string replacement) {
    ++outcome_.matched;
    ++outcome_.applied;
    rewriter_.record(std::move(what), std::move(replacement), reason(),
                     "by definition: the remaining nodes are unchanged");
  }

  void missed(std::string note) {
    ++outcome_.matched;
    outcome_.notes.push_back(std::move(note));
  }

  [[nodiscard]] std::string reason() const {
    return fmt::format("requested by {}{}{}", rule_.place.to_string(), rule_.reason.empty() ? "" : ": ", rule_.reason);
  }

  std::vector<std::string> names_of(const std::vector<onnx::Value*>& values) const {
    std::vector<std::string> names;
    for (const onnx::Value* value : values) names.push_back(value->name);
    return names;
  }

  std::vector<onnx::Value*> matching(const std::vector<onnx::Value*>& values, const NamePattern& name) const {
    std::vector<onnx::Value*> result;
    for (onnx::Value* value : values) {
      if (name.matches(value->name)) result.push_back(value);
    }
    return result;
  }

  void missed_tensor(const NamePattern& name, const char* what, const std::vector<onnx::Value*>& among) {
    const std::vector<std::string> known = names_of(among);
    constexpr std::size_t few = 8;
    std::string note = fmt::format("there is no {} '{}'{}", what, name.text(), did_you_mean(name.text(), known));
    if (known.size() <= few) note += fmt::format("; the model has {}", fmt::join(known, ", "));
    missed(std::move(note));
  }

  // ---- Names

  void rename() {
    for (const Rule::Entry& entry : rule_.entries) {
      const std::vector<onnx::Value*> values = matching(graph().values(), entry.name);
      if (values.empty()) missed_tensor(entry.name, "tensor", graph().values());
      for (onnx::Value* value : values) {
        const std::string before = value->name;
        std::string after = entry.name.renamed(before, std::get<std::string>(entry.value.data));
        if (after == before) continue;
        if (after.empty()) fail(entry.value.place, fmt::format("'{}' would get an empty name", before));
        if (graph().find_local(after) != nullptr) {
          fail(entry.value.place,
               fmt::format("'{}' would be renamed to '{}', but there is already a tensor '{}'", before, after, after));
        }
        graph().rename(*value, after);
        done({.others = fmt::format("tensor '{}'", before)}, fmt::format("'{}'", after));
      }
    }
  }

  void rename_nodes() {
    for (const Rule::Entry& entry : rule_.entries) {
      bool found = false;
      std::vector<std::string> known;
      for (onnx::Graph* part : rewriter_.graphs()) {
        for (onnx::Node* node : part->nodes()) {
          if (node->name.empty()) continue;
          known.push_back(node->name);
          if (!entry.name.matches(node->name)) continue;
          found = true;
          NodeRef before = ref_of(*node);
          node->name = entry.name.renamed(node->name, std::get<std::string>(entry.value.data));
          done({.nodes = {std::move(before)}}, fmt::format("'{}'", node->name));
        }
      }
      if (!found)
        missed(fmt::format("there is no node '{}'{}", entry.name.text(), did_you_mean(entry.name.text(), known)));
    }
  }

  // ---- Shapes and types

  /// Returns why the model cannot be run with synthetic inputs, or an empty string if it can.
  [[nodiscard]] std::string refusal(const onnx::Model& model) const {
    try {
      static_cast<void>(verify::verify_models(rewriter_.engine(), model, model, {.seeds = 1}));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  /// Throws Error if the shapes do not fit together after a change, or if a model that ran before does not run any
  /// more.
  void check_shapes(const onnx::Model& before) {
    try {
      infer_again(rewriter_.model());
    } catch (const Error& error) {
      fail(rule_.place, fmt::format("the network does not work with this shape: {}", error.what()));
    }
    if (!rewriter_.options().prove || outcome_.applied == 0) return;
    const std::string why = refusal(rewriter_.model());
    if (!why.empty() && refusal(before).empty()) {
      fail(rule_.place, fmt::format("the network does not work with this shape: {}", why));
    }
  }

  void set_shapes() {
    const onnx::Model before = rewriter_.model().clone();
    for (const Rule::Entry& entry : rule_.entries) {
      const std::vector<onnx::Value*> inputs = matching(graph().inputs(), entry.name);
      if (inputs.empty()) missed_tensor(entry.name, "input", graph().inputs());
      Shape shape;
      for (const std::string& dim : std::get<std::vector<std::string>>(entry.value.data)) {
        shape.push_back(parse_dim(dim, entry.value.place));
      }
      for (onnx::Value* input : inputs) {
        if (input->shape && input->shape->size() != shape.size()) {
          fail(entry.value.place, fmt::format("input '{}' is {}; its shape has {} dimensions, not {}", input->name,
                                              type_text(*input), input->shape->size(), shape.size()));
        }
        const std::string before = type_text(*input);
        input->shape = shape;
        done({.others = fmt::format("input '{}' {}", input->name, before)}, type_text(*input));
      }
    }
    check_shapes(before);
  }

  void set_types() {
    const onnx::Model before = rewriter_.model().clone();
    for (const Rule::Entry& entry : rule_.entries) {
      const std::vector<onnx::Value*> inputs = matching(graph().inputs(), entry.name);
      if (inputs.empty()) missed_tensor(entry.name, "input", graph().inputs());
      const onnx::ElementType type = onnx::parse_element_type(std::get<std::string>(entry.value.data)).value();
      for (onnx::Value* input : inputs) set_type(*input, type);
    }
    check_shapes(before);
  }

  /// Sets the type of an input, and adds a Cast to the old type, in which the network still computes.
  void set_type(onnx::Value& input, onnx::ElementType type) {
    const std::string name = input.name;
    if (!input.type) {
      input.type = type;
      done({.others = fmt::format("input '{}'", name)}, to_string(type));
      return;
    }
    if (*input.type == type) {
      done({.others = fmt::format("input '{}'", name)}, fmt::format("{} already", to_string(type)));
      return;
    }
    const onnx::ElementType before = *input.type;
    const std::vector<onnx::Value*> order = graph().inputs();
    graph().rename(input, graph().unique_name(fmt::format("{}_as_{}", name, to_string(before))));
    for (onnx::Value* value : order) graph().set_is_input(*value, false);
    for (onnx::Value* value : order) {
      if (value != &input) {
        graph().set_is_input(*value, true);
        continue;
      }
      onnx::Value* fresh = graph().add_input(name);
      fresh->type = type;
      fresh->shape = input.shape;
      const std::vector<onnx::Node*> nodes = graph().nodes();
      onnx::Node* cast =
          graph().add_node_with_outputs("Cast", {fresh}, {&input}, nodes.empty() ? nullptr : nodes.front());
      cast->name = name + "_cast";
      cast->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(before))));
    }
    done({.others = fmt::format("input '{}', {}", name, to_string(before))},
         fmt::format("{}, with a Cast to {} after it", to_string(type), to_string(before)));
  }

  // ---- Dimensions

  void fix() {
    const onnx::Model before = rewriter_.model().clone();
    for (const Rule::Entry& entry : rule_.entries) {
      const std::int64_t size = std::get<std::int64_t>(entry.value.data);
      const std::string& name = entry.name.text();
      const std::vector<std::string> symbols = verify::symbols_of_inputs(rewriter_.model());
      if (std::find(symbols.begin(), symbols.end(), name) != symbols.end()) {
        fix_symbol(name, size);
        done({.others = fmt::format("dimension {}", name)}, std::to_string(size));
        continue;
      }
      const std::size_t colon = name.rfind(':');
      onnx::Value* input = colon == std::string::npos ? nullptr : graph().find_local(name.substr(0, colon));
      if (input == nullptr || !input->is_input) {
        std::vector<std::string> named;
        for (const std::string& symbol : symbols) {
          if (!onnx::is_unknown(Dim::symbol(symbol))) named.push_back(symbol);
        }
        missed(fmt::format(
            "no input has a dimension '{}'{}; the named dimensions are {}, the inputs {}; write an axis as INPUT:AXIS, "
            "as in {}:0",
            name, did_you_mean(name, named), named.empty() ? "none" : fmt::format("{}", fmt::join(named, ", ")),
            fmt::join(names_of(graph().inputs()), ", "),
            graph().inputs().empty() ? "x" : graph().inputs().front()->name));
        continue;
      }
      fix_axis(*input, name.substr(colon + 1), size, entry);
    }
    check_shapes(before);
  }

  void fix_symbol(const std::string& symbol, std::int64_t size) {
    for (onnx::Value* input : graph().inputs()) {
      if (!input->shape) continue;
      for (Dim& dim : *input->shape) dim = with_symbol(dim, symbol, size);
    }
  }

  void fix_axis(onnx::Value& input, const std::string& axis_text, std::int64_t size, const Rule::Entry& entry) {
    const bool is_number = !axis_text.empty() && axis_text.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t axis = is_number && axis_text.size() < 4 ? std::stoul(axis_text) : std::string::npos;
    if (!input.shape || axis >= input.shape->size()) {
      fail(entry.name.place(),
           fmt::format("input '{}' is {}; it has no axis '{}'", input.name, type_text(input), axis_text));
    }
    const Dim before = (*input.shape)[axis];
    if (before.kind() == Dim::Kind::symbol) fix_symbol(before.name(), size);
    (*input.shape)[axis] = size;
    done({.others = fmt::format("axis {} of input '{}', {}", axis, input.name,
                                onnx::is_unknown(before) ? "?" : before.to_string())},
         std::to_string(size));
  }

  // ---- A batch of any size

  void make_batch_dynamic() {
    onnx::Model& model = rewriter_.model();
    std::optional<std::int64_t> batch;
    for (const onnx::Value* input : graph().inputs()) {
      if (!input->shape || input->shape->empty()) {
        fail(rule_.place, fmt::format("input '{}' is {}; it has no batch dimension", input->name, type_text(*input)));
      }
      const Dim& first = input->shape->front();
      if (!first.is_constant()) continue;
      if (batch && *batch != first.value()) {
        fail(rule_.place, fmt::format("the inputs have the batch sizes {} and {}; they must be equal. Set the shape of "
                                      "each input with `shape`",
                                      *batch, first.value()));
      }
      batch = first.value();
    }
    ++outcome_.matched;
    if (!batch) {
      ++outcome_.applied;
      outcome_.notes.push_back("the batch size is already dynamic");
      return;
    }
    onnx::Model before = model.clone();
    for (onnx::Value* input : graph().inputs()) input->shape->front() = Dim::symbol(rule_.symbol);
    std::string why_not;
    try {
      infer_again(model);
      free_reshapes(*batch);
      why_not = difference(before, model, *batch);
    } catch (const Error& error) {
      why_not = error.what();
    }
    const std::string what = fmt::format("the batch size {}", *batch);
    const std::string replacement = fmt::format("a dynamic batch size named {}", rule_.symbol);
    if (why_not.empty()) {
      ++outcome_.applied;
      rewriter_.record({.others = what}, replacement, reason(),
                       rewriter_.options().prove ? "two batches at once and one after the other have equal outputs"
                                                 : "not proven, as requested");
      return;
    }
    model = std::move(before);
    rewriter_.record_rejected({.others = what}, replacement, reason(), why_not);
    outcome_.notes.push_back(fmt::format("the rule was not applied: {}", why_not));
  }

  /// Changes each Reshape whose constant sizes begin with the old batch, or with a multiple of it.
  void free_reshapes(std::int64_t batch) {
    for (onnx::Node* node : graph().nodes()) {
      if (!node->is("Reshape") || node->input(0)->constant() || node->int_or("allowzero", 0) != 0) continue;
      const auto sizes = node->input(1)->constant();
      auto numbers = sizes ? sizes->ints() : std::nullopt;
      if (!numbers || numbers->empty()) continue;
      const auto& shape = node->input(0)->shape;
      const bool batch_comes_in = shape && !shape->empty() && shape->front() == Dim::symbol(rule_.symbol);
      const bool open = std::find(numbers->begin(), numbers->end(), -1) != numbers->end();
      if (batch_comes_in && numbers->front() == batch) {
        numbers->front() = 0;
        numbers = onnx::with_inferred_size(*shape, *std::move(numbers));
      } else if (!open && numbers->front() % batch == 0) {
        numbers->front() = -1;
      } else {
        continue;
      }
      graph().set_input(*node, 1, graph().add_constant(node->input(1)->name, onnx::TensorData::from_ints(*numbers)));
      infer_again(rewriter_.model());
    }
  }

  /// Runs the old model on two batches one after the other, and the new model on both at once. Returns the difference,
  /// or an empty string.
  [[nodiscard]] std::string difference(const onnx::Model& before, const onnx::Model& after, std::int64_t batch) const {
    if (!rewriter_.options().prove) return "";
    const std::unique_ptr<runtime::CompiledModel> reference = rewriter_.engine().compile(before);
    const std::unique_ptr<runtime::CompiledModel> candidate = rewriter_.engine().compile(after);
    constexpr std::uint64_t seeds = 2;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const runtime::TensorMap first = verify::make_inputs(before, {.seed = 2 * seed});
      const runtime::TensorMap second = verify::make_inputs(before, {.seed = 2 * seed + 1});
      const runtime::TensorMap expected = join_tensors(reference->run(first), reference->run(second));
      const runtime::TensorMap found = candidate->run(join_tensors(first, second));
      for (const auto& [name, value] : expected) {
        const onnx::Value* output = before.graph().find_local(name);
        const bool quantized = output != nullptr && verify::is_quantized(*output);
        const verify::Difference apart =
            verify::compare(value, found.at(name), verify::network_tolerance(value.type, quantized));
        if (!apart.equal()) {
          return fmt::format("with the batch size {}, output '{}' differs from two batches of {}: {}", 2 * batch, name,
                             batch, report::difference_text(apart));
        }
      }
    }
    return "";
  }

  // ---- Outputs and parts

  void add_outputs() {
    for (const NamePattern& name : rule_.names) {
      bool found = false;
      for (onnx::Value* value : matching(graph().values(), name)) {
        if (value->producer == nullptr) continue;
        found = true;
        const auto& outputs = graph().outputs();
        if (std::find(outputs.begin(), outputs.end(), value) != outputs.end()) {
          if (name.is_exact()) done({.others = fmt::format("tensor '{}'", value->name)}, "already an output");
          continue;
        }
        graph().add_output(*value);
        done({.others = fmt::format("tensor '{}'", value->name)}, "an output");
      }
      if (!found) missed_tensor(name, "output of a node", graph().values());
    }
  }

  void drop_outputs() {
    for (const NamePattern& name : rule_.names) {
      const std::vector<onnx::Value*> values = matching(graph().outputs(), name);
      if (values.empty()) missed_tensor(name, "output", graph().outputs());
      for (const onnx::Value* value : values) {
        const auto& outputs = graph().outputs();
        if (outputs.size() == 1)
          fail(name.place(), fmt::format("'{}' is the only output; a model needs at least one", value->name));
        const auto found = std::find(outputs.begin(), outputs.end(), value);
        graph().remove_output(static_cast<std::size_t>(found - outputs.begin()));
        done({.others = fmt::format("output '{}'", value->name)}, "nothing");
      }
    }
    graph().remove_dead();
  }

  std::vector<const onnx::Value*> values_of(const std::vector<NamePattern>& names) {
    std::vector<const onnx::Value*> result;
    for (const NamePattern& name : names) {
      const std::vector<onnx::Value*> values = matching(graph().values(), name);
      if (values.empty()) {
        fail(name.place(), fmt::format("there is no tensor '{}'{}", name.text(),
                                       did_you_mean(name.text(), names_of(graph().values()))));
      }
      result.insert(result.end(), values.begin(), values.end());
    }
    return result;
  }

  void cut() {
    std::vector<const onnx::Value*> from = values_of(rule_.from);
    std::vector<const onnx::Value*> to = values_of(rule_.to);
    if (to.empty()) to.assign(graph().outputs().begin(), graph().outputs().end());
    const std::vector<const onnx::Value*> reached = inputs_reached(to, from);
    if (rule_.from.empty()) {
      from = reached;
    } else {
      check_part(from, to, reached);
    }
    for (const onnx::Value* value : from) {
      if (!value->type)
        fail(rule_.place,
             fmt::format("the element type of '{}' is unknown, so the part cannot begin at it", value->name));
    }
    onnx::Model& model = rewriter_.model();
    const std::size_t before = graph().node_count();
    const std::string source = model.source;
    model = extract(model, from, to);
    model.source = source;
    done({.others = fmt::format("{} nodes", before)},
         fmt::format("the {} nodes from {} to {}", graph().node_count(), fmt::join(names_of(graph().inputs()), ", "),
                     fmt::join(names_of(graph().outputs()), ", ")));
  }

  void check_part(const std::vector<const onnx::Value*>& from, const std::vector<const onnx::Value*>& to,
                  const std::vector<const onnx::Value*>& reached) const {
    std::vector<std::string> missing;
    for (const onnx::Value* value : reached) {
      if (std::find(from.begin(), from.end(), value) == from.end()) missing.push_back("'" + value->name + "'");
    }
    if (!missing.empty()) {
      fail(rule_.place, fmt::format("the part also needs {}, which `from` does not list", fmt::join(missing, ", ")));
    }
    for (const onnx::Value* value : from) {
      const std::vector<const onnx::Value*> others = inputs_reached(to, from);
      if (std::find(others.begin(), others.end(), value) == others.end()) {
        fail(rule_.place, fmt::format("no node between `from` and `to` reads '{}'", value->name));
      }
    }
  }

  /// Returns the inputs of the part that ends at `to`: on each path back from `to`, the first tensor that is in `from`
  /// or is an input of the graph.
  [[nodiscard]] static std::vector<const onnx::Value*> inputs_reached(const std::vector<const onnx::Value*>& to,
                                                                      const std::vector<const onnx::Value*>& from) {
    std::vector<const onnx::Value*> result;
    std::unordered_set<const onnx::Value*> seen;
    std::vector<const onnx::Value*> waiting(to.rbegin(), to.rend());
    while (!waiting.empty()) {
      const onnx::Value* value = waiting.back();
      waiting.pop_back();
      if (value == nullptr || !seen.insert(value).second) continue;
      const bool is_border = std::find(from.begin(), from.end(), value) != from.end();
      if (is_border || value->is_input) {
        result.push_back(value);
        continue;
      }
      if (value->producer == nullptr) continue;
      for (const onnx::Value* input : value->producer->inputs) waiting.push_back(input);
      for (const onnx::Graph* inner : value->producer->subgraphs()) {
        inner->for_each_node([&](const onnx::Node& node) {
          for (const onnx::Value* input : node.inputs) {
            if (input != nullptr && input->graph == value->graph) waiting.push_back(input);
          }
        });
      }
    }
    return result;
  }

  Rewriter& rewriter_;
  const Rule& rule_;
  RuleOutcome outcome_;
};

}  // namespace

void apply_interface_rules(Rewriter& rewriter, const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    if (rule.stage == Rule::Stage::interface) rewriter.record_rule(InterfaceRule(rewriter, rule).run());
  }
}

}  // namespace graft::rules
