// Maintains the links between nodes and values during edits.
#include "onnx/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <iterator>
#include <queue>
#include <set>
#include <utility>

#include "onnx/copy.hpp"

namespace graft::onnx {
namespace {

[[noreturn]] void internal(const std::string& message) { throw Error(Error::Kind::internal, message); }

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // Clang 14 does not deduce this for an aggregate.

/// Appends the subgraphs in one attribute to `graphs`.
void append_graphs(const NodeAttribute& attribute, std::vector<Graph*>& graphs) {
  if (const auto* one = attribute.get<std::unique_ptr<Graph>>()) graphs.push_back(one->get());
  if (const auto* many = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
    for (const auto& graph : *many) graphs.push_back(graph.get());
  }
}

/// Calls `f` with the values of `graph` that a node reads, directly or in its subgraphs.
void for_each_dependency(const Node& node, const Graph& graph, const std::function<void(Value&)>& f) {
  for (Value* value : node.inputs) {
    if (value != nullptr && value->graph == &graph) f(*value);
  }
  for (const Graph* inner : node.subgraphs()) {
    for (const Node* inner_node : inner->nodes()) for_each_dependency(*inner_node, graph, f);
    for (Value* value : inner->outputs()) {
      if (value->graph == &graph) f(*value);
    }
  }
}

void erase_use(Value& value, const Use& use) {
  const auto found = std::find(value.uses.begin(), value.uses.end(), use);
  if (found != value.uses.end()) value.uses.erase(found);
}

/// Removes the uses and outputs that a subgraph, which is about to be removed, has registered at values of the
/// enclosing graphs.
void unlink_outer(const Graph& inner) {
  for (Value* value : inner.outputs()) {
    if (value->graph != &inner) --value->output_count;
  }
  for (Node* node : inner.nodes()) {
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      Value* value = node->inputs[i];
      if (value != nullptr && value->graph != &inner) erase_use(*value, {node, i});
    }
    for (const Graph* deeper : node->subgraphs()) unlink_outer(*deeper);
  }
}

}  // namespace

Dim unknown_dim() {
  static std::atomic<std::uint64_t> next{0};
  return Dim::symbol("?" + std::to_string(next++));
}

bool is_unknown(const Dim& dim) { return dim.kind() == Dim::Kind::symbol && dim.name().starts_with('?'); }

// ---- Values, attributes, nodes

std::optional<TensorData> Value::constant() const {
  if (initializer && !is_input) return initializer;
  if (producer == nullptr || !producer->is("Constant") || producer->attributes.size() != 1) return std::nullopt;
  const auto& [kind, attribute] = *producer->attributes.begin();
  if (const auto* tensor = attribute.get<TensorData>()) return *tensor;
  if (const auto* number = attribute.get<float>()) return TensorData::scalar_of(ElementType::f32, *number);
  if (const auto* numbers = attribute.get<std::vector<float>>()) return TensorData::from_floats(*numbers);
  if (const auto* integers = attribute.get<std::vector<std::int64_t>>()) return TensorData::from_ints(*integers);
  if (const auto* strings = attribute.get<std::vector<std::string>>()) return TensorData::from_strings(*strings);
  if (const auto* integer = attribute.get<std::int64_t>()) {
    TensorData result = TensorData::from_ints({*integer});
    result.dims.clear();
    return result;
  }
  if (const auto* text = attribute.get<std::string>()) {
    TensorData result = TensorData::from_strings({*text});
    result.dims.clear();
    return result;
  }
  return std::nullopt;
}

std::optional<std::int64_t> Value::rank() const {
  return shape ? std::optional(static_cast<std::int64_t>(shape->size())) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> constant_ints(const Value* value) {
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  return constant ? constant->ints() : std::nullopt;
}

NodeAttribute::NodeAttribute(const AttributeValue& value) {
  std::visit([this](const auto& alternative) { data = alternative; }, value);
}

std::optional<AttributeValue> NodeAttribute::value() const {
  if (const auto* v = get<float>()) return *v;
  if (const auto* v = get<std::int64_t>()) return *v;
  if (const auto* v = get<std::string>()) return *v;
  if (const auto* v = get<std::vector<float>>()) return *v;
  if (const auto* v = get<std::vector<std::int64_t>>()) return *v;
  return std::nullopt;
}

std::string_view NodeAttribute::kind() const {
  static constexpr std::array<std::string_view, std::variant_size_v<AttributeData>> names{
      "float",  "int",     "string", "floats", "ints",      "strings",
      "tensor", "tensors", "graph",  "graphs", "reference", "sparse tensor or type"};
  return names[data.index()];
}

bool Node::is_output_used(std::size_t i) const {
  const Value* value = output(i);
  return value != nullptr && !value->is_unused();
}

std::vector<Value*> Node::used_outputs() const {
  std::vector<Value*> used;
  std::copy_if(outputs.begin(), outputs.end(), std::back_inserter(used),
               [](const Value* value) { return value != nullptr && !value->is_unused(); });
  return used;
}

const NodeAttribute* Node::attribute(std::string_view attribute_name) const {
  const auto found = attributes.find(attribute_name);
  return found == attributes.end() ? nullptr : &found->second;
}

namespace {

template <class T>
const T* attribute_as(const Node& node, std::string_view name, std::string_view wanted) {
  const NodeAttribute* attribute = node.attribute(name);
  if (attribute == nullptr) return nullptr;
  const T* value = attribute->get<T>();
  if (value == nullptr) {
    throw Error(fmt::format("{}: attribute `{}` has type {}; it must have type {}", describe(node), name,
                            attribute->kind(), wanted));
  }
  return value;
}

}  // namespace

std::int64_t Node::int_or(std::string_view attribute_name, std::int64_t otherwise) const {
  const auto* value = attribute_as<std::int64_t>(*this, attribute_name, "int");
  return value == nullptr ? otherwise : *value;
}

float Node::float_or(std::string_view attribute_name, float otherwise) const {
  const auto* value = attribute_as<float>(*this, attribute_name, "float");
  return value == nullptr ? otherwise : *value;
}

std::string Node::string_or(std::string_view attribute_name, std::string_view otherwise) const {
  const auto* value = attribute_as<std::string>(*this, attribute_name, "string");
  return value == nullptr ? std::string(otherwise) : *value;
}

std::optional<std::vector<std::int64_t>> Node::ints(std::string_view attribute_name) const {
  const auto* value = attribute_as<std::vector<std::int64_t>>(*this, attribute_name, "ints");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::vector<float>> Node::floats(std::string_view attribute_name) const {
  const auto* value = attribute_as<std::vector<float>>(*this, attribute_name, "floats");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::vector<Graph*> Node::subgraphs() const {
  std::vector<Graph*> graphs;
  for (const auto& [attribute_name, attribute] : attributes) append_graphs(attribute, graphs);
  return graphs;
}

std::string describe(const Node& node) {
  std::string name = node.name;
  for (const Value* output : node.outputs) {
    if (name.empty() && output != nullptr) name = output->name;
  }
  return fmt::format("node '{}' ({}{})", name, node.domain.empty() ? "" : node.domain + "::", node.op_type);
}

// ---- Graph: look-ups

Graph::Graph(Graph* parent) : parent_(parent) {}
Graph::~Graph() = default;

Graph& Graph::root() {
  Graph* graph = this;
  while (graph->parent_ != nullptr) graph = graph->parent_;
  return *graph;
}

const Graph& Graph::root() const {
  const Graph* graph = this;
  while (graph->parent_ != nullptr) graph = graph->parent_;
  return *graph;
}

std::int64_t Graph::opset(std::string_view domain) const {
  const auto& imports = root().opset_imports;
  const auto found = imports.find(domain == "ai.onnx" ? "" : domain);
  return found == imports.end() ? 0 : found->second;
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> result;
  result.reserve(nodes_.size());
  for (const auto& node : nodes_) result.push_back(node.get());
  return result;
}

std::vector<Value*> Graph::values() const {
  std::vector<Value*> result;
  result.reserve(values_.size());
  for (const auto& value : values_) result.push_back(value.get());
  return result;
}

std::vector<Value*> Graph::initializers() const {
  std::vector<Value*> result;
  for (const auto& value : values_) {
    if (value->initializer) result.push_back(value.get());
  }
  return result;
}

Value* Graph::find_local(std::string_view value_name) const {
  const auto found = by_name_.find(std::string(value_name));
  return found == by_name_.end() ? nullptr : found->second->get();
}

Value* Graph::find(std::string_view value_name) const {
  for (const Graph* graph = this; graph != nullptr; graph = graph->parent_) {
    if (Value* value = graph->find_local(value_name)) return value;
  }
  return nullptr;
}

Node* Graph::find_node(std::string_view node_name) const {
  for (const auto& node : nodes_) {
    if (node->name == node_name) return node.get();
  }
  return nullptr;
}

void Graph::count_name(const std::string& value_name) { ++root().names_[value_name]; }

void Graph::forget_name(const std::string& value_name) {
  auto& names = root().names_;
  const auto found = names.find(value_name);
  if (found != names.end() && --found->second == 0) names.erase(found);
}

void Graph::forget_all_names() {
  for (const auto& value : values_) forget_name(value->name);
  for (const auto& node : nodes_) {
    for (Graph* inner : node->subgraphs()) inner->forget_all_names();
  }
}

std::string Graph::unique_name(std::string_view hint) const {
  const Graph& top = root();
  std::string base(hint.empty() ? "value" : hint);
  if (!top.names_.contains(base)) return base;
  std::size_t& suffix = top.suffixes_[base];
  for (;;) {
    std::string candidate = fmt::format("{}~{}", base, ++suffix);
    if (!top.names_.contains(candidate)) return candidate;
  }
}

// ---- Graph: values

Value* Graph::add_value(std::string value_name) {
  if (by_name_.contains(value_name)) throw Error(fmt::format("the name '{}' is defined twice", value_name));
  auto value = std::make_unique<Value>();
  value->name = std::move(value_name);
  value->graph = this;
  values_.push_back(std::move(value));
  const auto position = std::prev(values_.end());
  by_name_.emplace((*position)->name, position);
  count_name((*position)->name);
  return position->get();
}

Value* Graph::make_value(std::string_view hint) { return add_value(unique_name(hint)); }

Value* Graph::add_input(std::string value_name) {
  Value* value = add_value(std::move(value_name));
  set_is_input(*value, true);
  return value;
}

Value* Graph::add_constant(std::string_view hint, TensorData tensor) {
  Value* value = make_value(hint);
  set_initializer(*value, std::move(tensor));
  return value;
}

void Graph::set_initializer(Value& value, TensorData tensor) {
  if (value.producer != nullptr) internal("the output of " + describe(*value.producer) + " cannot be an initializer");
  value.type = tensor.type;
  value.shape = Shape(tensor.dims.begin(), tensor.dims.end());
  value.initializer = std::move(tensor);
}

void Graph::add_output(Value& value) {
  outputs_.push_back(&value);
  ++value.output_count;
}

void Graph::replace_output(std::size_t index, Value& value) {
  --outputs_.at(index)->output_count;
  outputs_[index] = &value;
  ++value.output_count;
}

void Graph::remove_output(std::size_t index) {
  --outputs_.at(index)->output_count;
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Graph::set_is_input(Value& value, bool is_input) {
  if (value.is_input == is_input) return;
  if (is_input && value.producer != nullptr)
    internal("the output of " + describe(*value.producer) + " cannot be an input");
  value.is_input = is_input;
  if (is_input) {
    inputs_.push_back(&value);
  } else {
    std::erase(inputs_, &value);
  }
}

void Graph::rename(Value& value, std::string new_name) {
  if (value.name == new_name) return;
  Graph& owner = *value.graph;
  if (owner.by_name_.contains(new_name)) throw Error(fmt::format("the name '{}' is defined twice", new_name));
  const auto entry = owner.by_name_.find(value.name);
  const auto position = entry->second;
  owner.by_name_.erase(entry);
  owner.forget_name(value.name);
  value.name = std::move(new_name);
  owner.by_name_.emplace(value.name, position);
  owner.count_name(value.name);
}

void Graph::remove_value(Value& value) {
  if (value.producer != nullptr || !value.is_unused()) internal("the value '" + value.name + "' is still in use");
  Graph& owner = *value.graph;
  owner.set_is_input(value, false);
  const auto entry = owner.by_name_.find(value.name);
  const auto position = entry->second;
  owner.by_name_.erase(entry);
  owner.forget_name(value.name);
  owner.values_.erase(position);
}

// ---- Graph: nodes

Node* Graph::insert_node(std::unique_ptr<Node> node, Node* before) {
  if (before != nullptr && before->graph != this) internal(describe(*before) + " is in another graph");
  node->graph = this;
  Node* raw = node.get();
  raw->position_ = nodes_.insert(before == nullptr ? nodes_.end() : before->position_, std::move(node));
  if (added_ != nullptr) added_->push_back(raw);
  return raw;
}

Node* Graph::add_node(std::string op_type, std::vector<Value*> inputs, const std::vector<std::string>& output_hints,
                      Node* before, std::string domain) {
  std::vector<Value*> outputs;
  outputs.reserve(output_hints.size());
  for (const std::string& hint : output_hints) outputs.push_back(hint.empty() ? nullptr : make_value(hint));
  return add_node_with_outputs(std::move(op_type), std::move(inputs), std::move(outputs), before, std::move(domain));
}

Node* Graph::add_node_with_outputs(std::string op_type, std::vector<Value*> inputs, std::vector<Value*> outputs,
                                   Node* before, std::string domain) {
  for (const Value* output : outputs) {
    if (output != nullptr && (output->producer != nullptr || output->is_input || output->initializer)) {
      throw Error(fmt::format("the value '{}' is defined twice", output->name));
    }
  }
  auto node = std::make_unique<Node>();
  node->op_type = std::move(op_type);
  node->domain = std::move(domain);
  node->inputs = std::move(inputs);
  node->outputs = std::move(outputs);
  Node* raw = insert_node(std::move(node), before);
  for (std::size_t i = 0; i < raw->inputs.size(); ++i) {
    if (raw->inputs[i] != nullptr) raw->inputs[i]->uses.push_back({raw, i});
  }
  for (std::size_t i = 0; i < raw->outputs.size(); ++i) {
    if (raw->outputs[i] == nullptr) continue;
    raw->outputs[i]->producer = raw;
    raw->outputs[i]->output_index = i;
  }
  return raw;
}

Value* Graph::add_output_to(Node& node, std::string_view hint) {
  Value* value = make_value(hint);
  value->producer = &node;
  value->output_index = node.outputs.size();
  node.outputs.push_back(value);
  return value;
}

void Graph::remove_node(Node& node) {
  for (const Value* output : node.outputs) {
    if (output != nullptr && !output->is_unused()) {
      internal(fmt::format("{} cannot be removed: its output '{}' is used", describe(node), output->name));
    }
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != nullptr) erase_use(*node.inputs[i], {&node, i});
  }
  for (Graph* inner : node.subgraphs()) {
    unlink_outer(*inner);
    inner->forget_all_names();
  }
  for (Value* output : node.outputs) {
    if (output == nullptr) continue;
    output->producer = nullptr;
    remove_value(*output);
  }
  if (node.graph->added_ != nullptr) std::erase(*node.graph->added_, &node);
  node.graph->nodes_.erase(node.position_);
}

std::vector<Node*> Graph::nodes_added_by(const std::function<void()>& edit) {
  std::vector<Node*> added;
  std::vector<Node*>* const around = std::exchange(added_, &added);
  try {
    edit();
  } catch (...) {
    added_ = around;
    throw;
  }
  added_ = around;
  if (around != nullptr) around->insert(around->end(), added.begin(), added.end());
  return added;
}

void Graph::remove_attribute(Node& node, std::string_view attribute_name) {
  const auto found = node.attributes.find(attribute_name);
  if (found == node.attributes.end()) return;
  std::vector<Graph*> graphs;
  append_graphs(found->second, graphs);
  for (Graph* inner : graphs) {
    unlink_outer(*inner);
    inner->forget_all_names();
  }
  node.attributes.erase(found);
}

void Graph::set_input(Node& node, std::size_t index, Value* value) {
  if (index > node.inputs.size()) internal(fmt::format("{} has no input {}", describe(node), index));
  if (index == node.inputs.size()) node.inputs.push_back(nullptr);
  if (node.inputs[index] != nullptr) erase_use(*node.inputs[index], {&node, index});
  node.inputs[index] = value;
  if (value != nullptr) value->uses.push_back({&node, index});
}

void Graph::remove_last_input(Node& node) {
  set_input(node, node.inputs.size() - 1, nullptr);
  node.inputs.pop_back();
}

void Graph::replace_all_uses(Value& from, Value& to, const Node* except) {
  if (&from == &to) return;
  if (!to.type) to.type = from.type;
  if (!to.shape) to.shape = from.shape;
  for (const Use& use : std::vector<Use>(from.uses)) {
    if (use.node != except) set_input(*use.node, use.index, &to);
  }
  if (!from.is_output() || from.is_input) return;

  Graph& owner = *from.graph;
  const bool own_output = std::find(owner.outputs_.begin(), owner.outputs_.end(), &from) != owner.outputs_.end();
  const bool takes_name = own_output && to.graph == &owner && to.producer != nullptr && !to.is_output();
  if (takes_name) {
    for (std::size_t i = 0; i < owner.outputs_.size(); ++i) {
      if (owner.outputs_[i] == &from) owner.replace_output(i, to);
    }
    std::string kept = from.name;
    owner.rename(from, unique_name(kept));
    owner.rename(to, std::move(kept));
  }
  if (!from.is_output()) return;
  // The name must stay on a value of its own, so an Identity becomes the producer of `from`.
  Node* old_producer = from.producer;
  const std::size_t old_index = from.output_index;
  if (old_producer == nullptr) {
    if (!from.initializer) return;
    from.initializer.reset();
  } else {
    old_producer->outputs[old_index] = nullptr;
    from.producer = nullptr;
  }
  Node* after = to.producer != nullptr && to.graph == &owner ? to.producer : nullptr;
  Node* before = after == nullptr ? (owner.nodes_.empty() ? nullptr : owner.nodes_.front().get()) : nullptr;
  if (after != nullptr) {
    const auto next = std::next(after->position_);
    before = next == owner.nodes_.end() ? nullptr : next->get();
  }
  owner.add_node_with_outputs("Identity", {&to}, {&from}, before);
}

void Graph::move_output(Node& from, std::size_t from_index, Node& to, std::size_t to_index) {
  Value* value = from.output(from_index);
  if (value == nullptr) internal(fmt::format("{} has no output {}", describe(from), from_index));
  if (to.outputs.size() <= to_index) to.outputs.resize(to_index + 1, nullptr);
  if (Value* old = to.outputs[to_index]) {
    if (!old->is_unused()) internal(fmt::format("the output '{}' of {} is used", old->name, describe(to)));
    old->producer = nullptr;
    remove_value(*old);
  }
  from.outputs[from_index] = nullptr;
  to.outputs[to_index] = value;
  value->producer = &to;
  value->output_index = to_index;
}

void Graph::detach_output(Node& node, std::size_t index) {
  if (Value* value = node.outputs.at(index)) value->producer = nullptr;
  node.outputs[index] = nullptr;
}

void Graph::topological_sort() {
  const std::vector<Node*> order = nodes();
  std::unordered_map<const Node*, std::size_t> index;
  for (std::size_t i = 0; i < order.size(); ++i) index.emplace(order[i], i);
  std::vector<std::size_t> waiting(order.size(), 0);
  std::vector<std::vector<std::size_t>> followers(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    for_each_dependency(*order[i], *this, [&](const Value& value) {
      if (value.producer == nullptr) return;
      followers[index.at(value.producer)].push_back(i);
      ++waiting[i];
    });
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::list<std::unique_ptr<Node>> sorted;
  std::size_t done = 0;
  std::vector<bool> placed(order.size(), false);
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    placed[i] = true;
    ++done;
    sorted.splice(sorted.end(), nodes_, order[i]->position_);
    for (const std::size_t follower : followers[i]) {
      if (--waiting[follower] == 0) ready.push(follower);
    }
  }
  if (done != order.size()) {
    sorted.splice(sorted.end(), nodes_);
    nodes_ = std::move(sorted);
    // Following producers that have no place yet, from any such node, ends in a cycle.
    std::size_t at = static_cast<std::size_t>(std::find(placed.begin(), placed.end(), false) - placed.begin());
    std::vector<bool> seen(order.size(), false);
    while (!seen[at]) {
      seen[at] = true;
      std::size_t next = at;
      for_each_dependency(*order[at], *this, [&](const Value& value) {
        if (value.producer != nullptr && !placed[index.at(value.producer)]) next = index.at(value.producer);
      });
      at = next;
    }
    throw Error(fmt::format("{} depends on its own output: the graph has a cycle", describe(*order[at])));
  }
  nodes_ = std::move(sorted);
  for (const auto& node : nodes_) {
    for (Graph* inner : node->subgraphs()) inner->topological_sort();
  }
}

std::size_t Graph::remove_dead() {
  std::size_t removed = 0;
  std::vector<Node*> order = nodes();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    const bool dead = std::all_of((*node)->outputs.begin(), (*node)->outputs.end(),
                                  [](const Value* v) { return v == nullptr || v->is_unused(); });
    if (dead) {
      remove_node(**node);
      ++removed;
      continue;
    }
    for (Graph* inner : (*node)->subgraphs()) removed += inner->remove_dead();
  }
  for (Value* value : values()) {
    if (value->producer == nullptr && !value->is_input && value->is_unused()) remove_value(*value);
  }
  return removed;
}

void Graph::check() const {
  std::unordered_map<const Node*, std::size_t> index;
  for (const auto& node : nodes_) index.emplace(node.get(), index.size());
  // Contains the uses of all values that a node of this graph can read.
  std::set<std::pair<const Node*, std::size_t>> counted;
  for (const Graph* scope = this; scope != nullptr; scope = scope->parent_) {
    for (const auto& value : scope->values_) {
      for (const Use& use : value->uses) {
        if (!counted.emplace(use.node, use.index).second)
          internal(fmt::format("a use of the value '{}' is counted twice", value->name));
      }
    }
  }
  for (const auto& value : values_) {
    const auto entry = by_name_.find(value->name);
    if (value->graph != this || entry == by_name_.end() || entry->second->get() != value.get()) {
      internal(fmt::format("the value '{}' is not registered under its name in its graph", value->name));
    }
    if (!root().names_.contains(value->name)) internal(fmt::format("the name '{}' is not counted", value->name));
    if (value->producer != nullptr && value->producer->output(value->output_index) != value.get()) {
      internal(fmt::format("the value '{}' is not an output of its producer", value->name));
    }
    for (const Use& use : value->uses) {
      if (use.node->input(use.index) != value.get())
        internal(fmt::format("the value '{}' counts more uses than exist", value->name));
    }
    const bool defined =
        value->producer != nullptr || value->is_input || value->initializer || !value->sparse_initializer.empty();
    if (!defined && !value->is_unused()) internal(fmt::format("the value '{}' is used and never defined", value->name));
  }
  for (const auto& node : nodes_) {
    if (node->graph != this) internal(describe(*node) + " is in another graph than its member `graph` states");
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const Value* value = node->inputs[i];
      if (value == nullptr) continue;
      if (!counted.contains({node.get(), i})) {
        internal(fmt::format("{}: the use of '{}' is not counted", describe(*node), value->name));
      }
      const Graph* scope = this;
      while (scope != nullptr && scope != value->graph) scope = scope->parent_;
      if (scope == nullptr)
        internal(fmt::format("{} uses '{}', which belongs to a graph that does not enclose the node", describe(*node),
                             value->name));
    }
    for_each_dependency(*node, *this, [&](const Value& value) {
      if (value.producer != nullptr && index.at(value.producer) >= index.at(node.get())) {
        internal(fmt::format("{} comes before the node that computes its input '{}'", describe(*node), value.name));
      }
    });
    for (const Graph* inner : node->subgraphs()) {
      if (inner->parent_ != this) internal(describe(*node) + " contains a graph with another parent");
      inner->check();
    }
  }
}

void Graph::for_each_node(const std::function<void(Node&)>& f) {
  for (Node* node : nodes()) {
    const std::vector<Graph*> inner = node->subgraphs();
    f(*node);
    for (Graph* graph : inner) graph->for_each_node(f);
  }
}

void Graph::for_each_node(const std::function<void(const Node&)>& f) const {
  for (const Node* node : nodes()) {
    f(*node);
    for (const Graph* inner : node->subgraphs()) inner->for_each_node(f);
  }
}

// ---- Copies

NodeAttribute copy_attribute(const NodeAttribute& attribute) {
  NodeAttribute copy;
  copy.doc = attribute.doc;
  std::visit(
      Overloaded{[&](const std::unique_ptr<Graph>&) { internal("a graph attribute was copied without its graph"); },
                 [&](const std::vector<std::unique_ptr<Graph>>&) {
                   internal("a graph attribute was copied without its graph");
                 },
                 [&](const auto& value) { copy.data = value; }},
      attribute.data);
  return copy;
}

namespace {

std::unique_ptr<Graph> clone_without_nodes(const Graph& graph, Graph* new_parent) {
  auto copy = std::make_unique<Graph>(new_parent);
  copy->name = graph.name;
  copy->doc = graph.doc;
  copy->metadata = graph.metadata;
  copy->opaque = graph.opaque;
  copy->opset_imports = graph.opset_imports;
  return copy;
}

}  // namespace

void copy_facts(const Value& from, Value& to) {
  to.type = from.type;
  to.shape = from.shape;
  to.container = from.container;
  to.opaque = from.opaque;
  to.sparse_initializer = from.sparse_initializer;
  to.initializer = from.initializer;
}

Value* copy_value(const Value& value, Graph& into) {
  Value* made = into.add_value(value.name);
  copy_facts(value, *made);
  return made;
}

Node* copy_node(const Node& node, Graph& into, const std::function<Value*(Value*)>& look_up) {
  const auto copies_of = [&](const std::vector<Value*>& values) {
    std::vector<Value*> copies;
    for (Value* value : values) copies.push_back(value == nullptr ? nullptr : look_up(value));
    return copies;
  };
  Node* made =
      into.add_node_with_outputs(node.op_type, copies_of(node.inputs), copies_of(node.outputs), nullptr, node.domain);
  made->overload = node.overload;
  made->name = node.name;
  made->doc = node.doc;
  made->metadata = node.metadata;
  made->opaque = node.opaque;
  for (const auto& [attribute_name, attribute] : node.attributes) {
    NodeAttribute& target = made->attributes[attribute_name];
    target.doc = attribute.doc;
    std::visit(
        Overloaded{[&](const std::unique_ptr<Graph>& inner) { target.data = clone_graph(*inner, &into, look_up); },
                   [&](const std::vector<std::unique_ptr<Graph>>& inner) {
                     std::vector<std::unique_ptr<Graph>> graphs;
                     for (const auto& one : inner) graphs.push_back(clone_graph(*one, &into, look_up));
                     target.data = std::move(graphs);
                   },
                   [&](const auto& value) { target.data = value; }},
        attribute.data);
  }
  return made;
}

std::unique_ptr<Graph> clone_graph(const Graph& graph, Graph* new_parent, const std::function<Value*(Value*)>& outer) {
  auto copy = clone_without_nodes(graph, new_parent);
  std::unordered_map<const Value*, Value*> map;
  for (const Value* value : graph.values()) map.emplace(value, copy_value(*value, *copy));
  const std::function<Value*(Value*)> look_up = [&](Value* value) -> Value* {
    const auto found = map.find(value);
    return found == map.end() ? outer(value) : found->second;
  };
  for (const Value* input : graph.inputs()) copy->set_is_input(*map.at(input), true);
  for (const Node* node : graph.nodes()) copy_node(*node, *copy, look_up);
  for (Value* output : graph.outputs()) copy->add_output(*look_up(output));
  return copy;
}

namespace {

Value* no_outer(Value* value) { internal("the value '" + value->name + "' belongs to no graph that is being copied"); }

}  // namespace

FunctionDefinition FunctionDefinition::clone() const {
  FunctionDefinition copy;
  copy.key = key;
  copy.attributes = attributes;
  for (const auto& [name, value] : attribute_defaults) copy.attribute_defaults.emplace(name, copy_attribute(value));
  copy.body = clone_graph(*body, nullptr, no_outer);
  copy.doc = doc;
  copy.metadata = metadata;
  copy.opaque = opaque;
  return copy;
}

const FunctionDefinition* Model::find_function(const Node& call) const {
  const auto found = functions.find({call.domain, call.op_type, call.overload});
  return found == functions.end() ? nullptr : &found->second;
}

Model clone_without_nodes(const Model& model) {
  Model copy;
  copy.ir_version = model.ir_version;
  copy.producer_name = model.producer_name;
  copy.producer_version = model.producer_version;
  copy.domain = model.domain;
  copy.model_version = model.model_version;
  copy.doc = model.doc;
  copy.metadata = model.metadata;
  copy.opaque = model.opaque;
  copy.main = clone_without_nodes(*model.main, nullptr);
  for (const auto& [key, function] : model.functions) copy.functions.emplace(key, function.clone());
  copy.source = model.source;
  return copy;
}

Model Model::clone() const {
  Model copy = clone_without_nodes(*this);
  copy.main = clone_graph(*main, nullptr, no_outer);
  return copy;
}

}  // namespace graft::onnx
