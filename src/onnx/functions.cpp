// Inlines model-local functions.
#include "onnx/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/utf8.hpp"
#include "onnx/copy.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema_ports.hpp"
#include "onnx/standard_operators.hpp"

namespace graft::onnx {
namespace {

std::string to_string(const FunctionKey& key) { return fmt::format("{}::{}", key.domain, key.name); }

const FunctionDefinition* function_of(const std::map<FunctionKey, FunctionDefinition>& functions, const Node& node) {
  const auto found = functions.find({node.domain, node.op_type, node.overload});
  return found == functions.end() ? nullptr : &found->second;
}

/// Returns the AttributeProto.AttributeType of an attribute, or 0 for kinds whose type is not checked. A call's
/// attribute must have the type that a reference to it in the body of the function declares.
std::int32_t onnx_type_of(const NodeAttribute& attribute) {
  static constexpr std::array<std::int32_t, std::variant_size_v<AttributeData>> types{1, 2, 3, 6,  7, 8,
                                                                                      4, 9, 5, 10, 0, 0};
  return types[attribute.data.index()];
}

/// Copies the nodes of a function's body into the graph of the call.
class Inliner {
 public:
  Inliner(Node& call, const FunctionDefinition& function)
      : call_(call), function_(function), graph_(*call.graph), prefix_(prefix_of(call)) {}

  /// Inlines the call and removes it. Returns the new nodes, without nodes of subgraphs.
  std::vector<Node*> run() {
    const Graph& body = *function_.body;
    if (call_.inputs.size() > body.inputs().size() || call_.outputs.size() > body.outputs().size()) {
      throw Error(fmt::format(
          "{}: it has {} inputs and {} outputs, but the function {} that it calls has {} inputs and {} outputs",
          describe(call_), call_.inputs.size(), call_.outputs.size(), to_string(function_.key), body.inputs().size(),
          body.outputs().size()));
    }
    for (std::size_t i = 0; i < body.inputs().size(); ++i) map_[body.inputs()[i]] = call_.input(i);
    std::vector<Node*> made;
    for (const Node* node : body.nodes()) made.push_back(copy_node(*node, graph_, &call_));

    for (std::size_t i = 0; i < call_.outputs.size(); ++i) {
      if (call_.outputs[i] == nullptr) continue;
      Value* inner = map_.at(body.outputs()[i]);
      const bool can_take = inner != nullptr && inner->producer != nullptr && inner->graph == &graph_ &&
                            std::find(made.begin(), made.end(), inner->producer) != made.end() &&
                            !taken_.contains(inner);
      if (!can_take) {
        if (inner == nullptr)
          throw Error(describe(call_) + ": the function that it calls returns an input that this node leaves out");
        Node* identity = graph_.add_node("Identity", {inner}, {}, &call_);
        graph_.move_output(call_, i, *identity, 0);
        made.push_back(identity);
        continue;
      }
      // The call's output takes the place of the body's value, so that its name and uses are kept.
      Value* outer = call_.outputs[i];
      Node* producer = inner->producer;
      const std::size_t index = inner->output_index;
      for (const Use& use : std::vector<Use>(inner->uses)) graph_.set_input(*use.node, use.index, outer);
      for (auto& [from, to] : map_) {
        if (to == inner) to = outer;
      }
      graph_.move_output(call_, i, *producer, index);
      taken_.insert(outer);
    }
    graph_.remove_node(call_);
    return made;
  }

 private:
  static std::string prefix_of(const Node& call) {
    std::string name = call.name;
    for (const Value* output : call.outputs) {
      if (name.empty() && output != nullptr) name = output->name;
    }
    if (name.empty()) name = call.op_type;
    // In a chain of functions each name is longer than the previous one, so long names are shortened and hashed.
    constexpr std::size_t longest = 1024;
    if (name.size() <= longest) return name + "/";
    std::size_t kept = 128;
    while (kept > 0 && is_utf8_continuation(name[kept])) --kept;
    return fmt::format("{}~{:x}/", name.substr(0, kept), std::hash<std::string>()(name));
  }

  /// Returns a name that no other node of the body has: `wanted`, or `wanted~1`, `wanted~2` ... ONNX Runtime refuses
  /// models in which two nodes have the same name.
  std::string unused_name(const std::string& wanted) {
    std::string name = wanted;
    for (std::size_t i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}~{}", wanted, i);
    return name;
  }

  Value* look_up(Value* value) const {
    if (value == nullptr) return nullptr;
    const auto found = map_.find(value);
    if (found == map_.end()) {
      throw Error(Error::Kind::internal,
                  fmt::format("function {}: '{}' is not defined", to_string(function_.key), value->name));
    }
    return found->second;
  }

  Node* copy_node(const Node& node, Graph& target, Node* before) {
    std::vector<Value*> inputs;
    std::vector<Value*> outputs;
    for (Value* value : node.inputs) inputs.push_back(look_up(value));
    // An input that the call leaves out becomes an absent input. Absent inputs at the end are dropped, because a node
    // leaves out its last inputs by having fewer inputs.
    while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
    for (Value* value : node.outputs) {
      outputs.push_back(value == nullptr ? nullptr : target.make_value(prefix_ + value->name));
      if (value != nullptr) map_[value] = outputs.back();
    }
    Node* copy = target.add_node_with_outputs(node.op_type, std::move(inputs), std::move(outputs), before, node.domain);
    copy->overload = node.overload;
    copy->name = unused_name(prefix_ + (node.name.empty() ? node.op_type : node.name));
    copy->doc = node.doc;
    copy->metadata = node.metadata;
    copy->opaque = node.opaque;
    for (const auto& [name, attribute] : node.attributes) copy_attribute_to(*copy, name, attribute);
    // The body may read an input that the call leaves out, so the inputs of the copy are checked.
    if (const auto fault = copy->domain.empty() ? port_fault(*copy, copy->graph->opset()) : std::nullopt) {
      throw Error(fmt::format("{}: in the function {}, {}: {}", describe(call_), to_string(function_.key),
                              describe(node), *fault));
    }
    return copy;
  }

  void copy_attribute_to(Node& copy, const std::string& name, const NodeAttribute& attribute) {
    if (const auto* reference = attribute.get<AttributeReference>()) {
      const NodeAttribute* given = call_.attribute(reference->name);
      if (given == nullptr) {
        const auto found = function_.attribute_defaults.find(reference->name);
        // In this case ONNX defines that the node does not have the attribute.
        if (found == function_.attribute_defaults.end()) return;
        given = &found->second;
      }
      const std::int32_t type = onnx_type_of(*given);
      if (type != 0 && reference->onnx_type != 0 && type != reference->onnx_type) {
        throw Error(fmt::format("{}: attribute `{}` has type {}, which the body of function {} does not accept",
                                describe(call_), reference->name, given->kind(), to_string(function_.key)));
      }
      copy.attributes[name] = graft::onnx::copy_attribute(*given);
      return;
    }
    NodeAttribute& target = copy.attributes[name];
    target.doc = attribute.doc;
    if (const auto* one = attribute.get<std::unique_ptr<Graph>>()) {
      target.data = copy_graph(**one, *copy.graph);
    } else if (const auto* many = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
      std::vector<std::unique_ptr<Graph>> graphs;
      for (const auto& graph : *many) graphs.push_back(copy_graph(*graph, *copy.graph));
      target.data = std::move(graphs);
    } else {
      target = graft::onnx::copy_attribute(attribute);
    }
  }

  std::unique_ptr<Graph> copy_graph(const Graph& graph, Graph& parent) {
    auto copy = std::make_unique<Graph>(&parent);
    copy->name = graph.name;
    copy->doc = graph.doc;
    copy->metadata = graph.metadata;
    copy->opaque = graph.opaque;
    for (Value* value : graph.values()) {
      if (value->producer != nullptr) continue;  // These values are created with their nodes.
      Value* made = copy->make_value(prefix_ + value->name);
      copy_facts(*value, *made);
      map_[value] = made;
    }
    for (Value* input : graph.inputs()) copy->set_is_input(*map_.at(input), true);
    for (const Node* node : graph.nodes()) copy_node(*node, *copy, nullptr);
    for (Value* output : graph.outputs()) {
      Value* value = look_up(output);
      if (value == nullptr)
        throw Error(describe(call_) +
                    ": a sub-graph in the function that it calls returns an input that this node leaves out");
      copy->add_output(*value);
    }
    return copy;
  }

  Node& call_;
  const FunctionDefinition& function_;
  Graph& graph_;
  std::string prefix_;
  std::set<std::string> names_;  // The names of the new nodes so far.
  std::unordered_map<const Value*, Value*> map_;
  std::set<const Value*> taken_;
};

std::string id_of_outermost(const Node& call) {
  const auto noted = call.metadata.find(call_note);
  return noted == call.metadata.end() ? ref_of(call).id : noted->second;
}

std::size_t count_nodes(const Graph& graph) {
  std::size_t count = 0;
  graph.for_each_node([&](const Node& /*node*/) { ++count; });
  return count;
}

bool uses_changed_operator(const Graph& graph, std::int64_t from, std::int64_t to) {
  bool changed = false;
  graph.for_each_node([&](const Node& node) {
    if (!node.domain.empty()) return;
    changed = changed || form_changed(node.op_type, from, to) || first_version(node.op_type) > to;
  });
  return changed;
}

/// Raises the opset of the model, or the opsets of the functions to inline, until no operator of a function's body
/// differs between the opset of the function and that of the model.
void agree_on_opsets(Model& model, const InlineOptions& options) {
  std::int64_t wanted = model.graph().opset();
  for (const auto& [key, function] : model.functions) {
    if (!options.which(key)) continue;
    const std::int64_t version = function.body->opset();
    if (version == 0 || version == wanted) continue;
    if (wanted == 0 || (version > wanted && uses_changed_operator(*function.body, version, wanted))) wanted = version;
  }
  if (wanted != model.graph().opset()) {
    if (model.graph().opset() != 0) {
      raise_graph_opset(model.graph(), wanted, false);
    } else {
      model.graph().opset_imports[""] = wanted;
    }
  }
  std::set<std::string_view> domains_of_functions;
  for (const auto& [key, function] : model.functions) domains_of_functions.insert(key.domain);
  for (auto& [key, function] : model.functions) {
    if (!options.which(key)) continue;
    const std::int64_t version = function.body->opset();
    if (version != 0 && version < wanted && uses_changed_operator(*function.body, version, wanted)) {
      raise_graph_opset(*function.body, wanted, true);
    }
    for (const auto& [domain, imported] : function.body->opset_imports) {
      if (domain.empty()) continue;
      const auto [entry, is_new] = model.graph().opset_imports.emplace(domain, imported);
      if (!is_new && entry->second != imported && !domains_of_functions.contains(domain)) {
        throw Error(
            fmt::format("{}: function {} imports operator set {} of '{}', but the model imports {}; the function can "
                        "be inlined only if both import the same operator set",
                        model.source, to_string(key), imported, domain, entry->second));
      }
    }
  }
}

}  // namespace

void check_function_calls(const Model& model) {
  enum class State : std::uint8_t { unseen, open, done };
  std::map<FunctionKey, State> states;
  // Uses an explicit stack, because a malicious file may chain any number of functions.
  struct Frame {
    const FunctionDefinition* function;
    std::vector<const FunctionDefinition*> callees;
  };
  const auto callees_of = [&](const FunctionDefinition& function) {
    std::vector<const FunctionDefinition*> callees;
    std::as_const(*function.body).for_each_node([&](const Node& node) {
      if (const auto* callee = function_of(model.functions, node)) callees.push_back(callee);
    });
    return callees;
  };
  for (const auto& [key, function] : model.functions) {
    if (states[key] != State::unseen) continue;
    std::vector<Frame> stack{{&function, callees_of(function)}};
    states[key] = State::open;
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.callees.empty()) {
        states[top.function->key] = State::done;
        stack.pop_back();
        continue;
      }
      const FunctionDefinition* callee = top.callees.back();
      top.callees.pop_back();
      State& state = states[callee->key];
      if (state == State::open) {
        throw Error(fmt::format(
            "{}: function {} calls itself, directly or through another function; recursion is not supported",
            model.source, to_string(callee->key)));
      }
      if (state == State::unseen) {
        state = State::open;
        stack.push_back({callee, callees_of(*callee)});
      }
    }
  }
}

std::size_t inline_functions(Model& model, const InlineOptions& options) {
  check_function_calls(model);
  agree_on_opsets(model, options);
  std::size_t inlined = 0;
  std::size_t total = count_nodes(model.graph());
  std::map<FunctionKey, std::size_t> sizes;
  std::size_t in_file = total;
  for (const auto& [key, function] : model.functions) {
    sizes[key] = count_nodes(*function.body);
    in_file += sizes[key];
  }
  // Functions that each call another function twice expand to exponentially many nodes.
  constexpr std::size_t always = 32'768;
  const std::size_t most = std::min(options.max_nodes, always + 16 * in_file);

  const auto inline_in = [&](Graph& graph) {
    std::vector<Node*> waiting;
    const auto add_calls = [&](Node& node) {
      const FunctionDefinition* function = function_of(model.functions, node);
      if (function != nullptr && options.which(function->key)) waiting.push_back(&node);
    };
    graph.for_each_node([&](Node& node) { add_calls(node); });
    while (!waiting.empty()) {
      Node* call = waiting.back();
      waiting.pop_back();
      const FunctionDefinition& function = *function_of(model.functions, *call);
      total += sizes.at(function.key);
      if (total > most) {
        throw Error(fmt::format(
            "{}: the model has more than {} nodes when its functions are inlined, which Graft does not support",
            model.source, most));
      }
      const std::string outermost = options.note_calls ? id_of_outermost(*call) : std::string();
      const auto take = [&](Node& node) {
        if (options.note_calls) node.metadata[std::string(call_note)] = outermost;
        add_calls(node);
      };
      for (Node* node : Inliner(*call, function).run()) {
        take(*node);
        for (Graph* inner : node->subgraphs()) inner->for_each_node(take);
      }
      ++inlined;
    }
  };
  inline_in(model.graph());
  // A function that is kept may call one that is inlined. Inlined functions are removed below.
  for (auto& [key, function] : model.functions) {
    if (!options.which(key)) inline_in(*function.body);
  }
  remove_unused_functions(model);
  return inlined;
}

std::size_t remove_unused_functions(Model& model) {
  std::set<FunctionKey> used;
  std::vector<const Graph*> waiting{&model.graph()};
  while (!waiting.empty()) {
    const Graph* graph = waiting.back();
    waiting.pop_back();
    graph->for_each_node([&](const Node& node) {
      const auto* function = function_of(model.functions, node);
      if (function != nullptr && used.insert(function->key).second) waiting.push_back(function->body.get());
    });
  }
  return std::erase_if(model.functions, [&](const auto& entry) { return !used.contains(entry.first); });
}

std::vector<Node*> inline_call(Node& call, const FunctionDefinition& function) { return Inliner(call, function).run(); }

}  // namespace graft::onnx
