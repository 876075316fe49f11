// Converts branches to If, and loops to Loop. A loop that counts from 0 becomes a Loop with a fixed number of
// iterations. A list that such a loop fills element by element becomes one of its scan outputs. Keras' recurrent layers
// have this form.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "graft/error.hpp"
#include "import/messages.hpp"
#include "import/tensorflow/scope.hpp"

namespace graft::tensorflow {
namespace {

constexpr std::int64_t to_the_end = std::numeric_limits<std::int64_t>::max();

/// Adds an empty subgraph as an attribute of the node.
onnx::Graph& add_graph(onnx::Node& node, const std::string& attribute) {
  auto graph = std::make_unique<onnx::Graph>(node.graph);
  onnx::Graph& result = *graph;
  result.name = attribute;
  node.attributes[attribute] = onnx::NodeAttribute(onnx::AttributeData(std::move(graph)));
  return result;
}

/// Adds `value` as an output of the subgraph that `builder` builds. An Identity is added first if no node of the
/// subgraph computes the value, or if the value is an output already.
void add_result(NodeBuilder& builder, onnx::Value* value) {
  const bool is_own = value->graph == &builder.graph() && value->producer != nullptr && !value->is_output();
  builder.graph().add_output(is_own ? *value : *builder.add("Identity", {value}));
}

bool is_one(const NodeDef* node) {
  if (node == nullptr || node->op() != "Const" || !node->attr().contains("value")) return false;
  return read_scalar(node->attr().at("value").tensor()) == 1.0;
}

/// Returns whether loop variable `i` is a counter: the body returns its argument plus 1.
bool is_counter(const Scope& body, std::size_t i) {
  const NodeDef* sum = body.node_of(body.source_of(body.results()[i]));
  if (sum == nullptr || (sum->op() != "AddV2" && sum->op() != "Add")) return false;
  const auto inputs = data_inputs(*sum);
  if (inputs.size() != 2) return false;
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    if (body.argument(inputs[k]) == i && is_one(body.node_of(body.source_of(inputs[1 - k])))) return true;
  }
  return false;
}

/// The use of a variable by its loop; `carried` stands for every use that is not listed below.
enum class Role : std::uint8_t {
  carried,
  invariant,  ///< The body returns the variable unchanged.
  counter,    ///< The variable is the number of the iteration.
  list,       ///< The variable is a list whose element i is set in iteration i.
  last,       ///< The variable is a list of one element that every iteration sets.
};

/// An operator that sets an element of a list, with the indices of the inputs for list, element and position.
struct Setter {
  std::string_view op;
  std::size_t list;
  std::size_t item;
  std::size_t index;
};
constexpr std::size_t none = 99;
constexpr std::array setters = {Setter{"TensorListSetItem", 0, 2, 1}, Setter{"TensorArrayWriteV3", 3, 2, 1},
                                Setter{"TensorListPushBack", 0, 1, none}};

class LoopConverter {
 public:
  LoopConverter(LoopPlan& plan, NodeConverter& node, const Scope& around, std::vector<onnx::Value*> initial,
                std::map<TensorName, onnx::Value*> captured, Reading& reading)
      : plan_(plan),
        node_(node),
        around_(around),
        initial_(std::move(initial)),
        captured_(std::move(captured)),
        contents_(reading.contents),
        constants_(reading.constants) {}

  void run() {
    find_roles();
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      if (roles_[i] == Role::carried && initial_[i] == nullptr) {
        node_.fail(
            fmt::format("its variable {} is a list ('{}') whose elements have no fixed shape and which is not filled "
                        "from the first element to the last; {}, or freeze the network with a fixed batch size",
                        i, plan_.initial[i].node, give_shapes()));
      }
    }
    onnx::Node* loop = make_node();
    // An axis along which a variable changes its size between iterations becomes dynamic. This is detected after the
    // body has been built once, so the body may be built several times.
    constexpr int most_tries = 4;
    for (int i = 0; !fill_body(*loop); ++i) {
      if (i == most_tries)
        node_.fail(
            "the shapes of its variables change in every iteration, and Graft found no shapes that hold for all "
            "iterations");
    }
    give(*loop);
  }

 private:
  [[nodiscard]] std::size_t count() const { return plan_.initial.size(); }

  void find_roles() {
    const Scope& body = *plan_.body;
    roles_.assign(count(), Role::carried);
    for (std::size_t i = 0; i < count(); ++i) {
      if (body.argument(body.results()[i]) == i) roles_[i] = Role::invariant;
    }
    std::vector<bool> counts(count(), false);
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] != Role::carried || initial_[i] == nullptr || !is_counter(body, i)) continue;
      const auto start = node_.ints_in(initial_[i]);
      counts[i] = start && start->size() == 1 && start->front() == 0;
    }
    std::vector<onnx::Value*> bounds;
    if (!find_bounds(plan_.condition->results()[0], counts, bounds)) return;
    trip_ = least(bounds);
    for (std::size_t i = 0; i < count(); ++i) {
      if (counts[i]) roles_[i] = Role::counter;
    }
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] == Role::carried) find_list(i, bounds);
    }
  }

  /// Appends to `bounds` the value m of a loop condition `a < m`, or of each such condition joined by LogicalAnd. a
  /// must be a variable for which `counts` is true: it starts at 0 and counts the iterations. Returns false for any
  /// other condition.
  bool find_bounds(const TensorName& name, const std::vector<bool>& counts, std::vector<onnx::Value*>& bounds,
                   int depth = 0) {
    const Scope& condition = *plan_.condition;
    constexpr std::size_t many = 16;
    const NodeDef* test = condition.node_of(condition.source_of(name));
    if (test == nullptr || bounds.size() > many || depth > static_cast<int>(many)) return false;
    const auto inputs = data_inputs(*test);
    if (inputs.size() != 2) return false;
    if (test->op() == "LogicalAnd") {
      return find_bounds(inputs[0], counts, bounds, depth + 1) && find_bounds(inputs[1], counts, bounds, depth + 1);
    }
    if (test->op() != "Less") return false;
    const auto counter = condition.argument(inputs[0]);
    if (!counter || !counts[*counter]) return false;
    const TensorName bound = condition.source_of(inputs[1]);
    onnx::Value* value = nullptr;
    if (const auto i = condition.argument(bound)) {
      if (roles_[*i] == Role::invariant) value = initial_[*i];
    } else if (const NodeDef* node = condition.node_of(bound); node != nullptr) {
      if (node->op() == "Const" && node->attr().contains("value")) {
        const auto number = read_scalar(node->attr().at("value").tensor());
        if (number) value = node_.scalar_of(*number, onnx::ElementType::i64);
      } else if (node->op() == "Enter") {
        const auto found = captured_.find(data_inputs(*node).at(0));
        if (found != captured_.end()) value = found->second;
      }
    }
    if (value == nullptr) return false;
    bounds.push_back(value);
    return true;
  }

  onnx::Value* as_count(onnx::Value* value) {
    onnx::Value* number = node_.cast(value, onnx::ElementType::i64);
    return number->shape && number->shape->empty() ? number : node_.reshape(number, {});
  }

  /// Returns the smallest bound as an i64 scalar, computed by Min if there are several. Equal numbers and symbols count
  /// once, so that "n iterations, at most n" has the bound n without a Min.
  onnx::Value* least(const std::vector<onnx::Value*>& bounds) {
    std::vector<onnx::Value*> different;
    for (onnx::Value* bound : bounds) {
      const bool is_new = std::none_of(different.begin(), different.end(),
                                       [&](const onnx::Value* other) { return is_equal(*bound, *other); });
      if (is_new) different.push_back(bound);
    }
    std::int64_t smallest = to_the_end;
    std::vector<onnx::Value*> counts;
    for (onnx::Value* bound : different) {
      const auto known = node_.ints_in(bound);
      if (known && known->size() == 1) {
        smallest = std::min(smallest, std::max<std::int64_t>(known->front(), 0));
      } else {
        counts.push_back(as_count(bound));
      }
    }
    if (smallest != to_the_end)
      counts.push_back(node_.scalar_of(static_cast<double>(smallest), onnx::ElementType::i64));
    if (counts.size() == 1) return counts[0];
    return node_.add("Min", counts);
  }

  bool is_equal(const onnx::Value& a, const onnx::Value& b) const {
    if (&a == &b) return true;
    const auto known = node_.ints_in(&a);
    const auto other = node_.ints_in(&b);
    if (known && other) return *known == *other;
    const auto contents = contents_.find(&a);
    const auto others = contents_.find(&b);
    return contents != contents_.end() && others != contents_.end() && contents->second.size() == 1 &&
           contents->second == others->second && !onnx::is_unknown(contents->second[0]);
  }

  void find_list(std::size_t i, const std::vector<onnx::Value*>& bounds) {
    Scope& body = *plan_.body;
    const NodeDef* set = body.node_of(body.source_of(body.results()[i]));
    if (set == nullptr) return;
    const auto* const setter =
        std::find_if(setters.begin(), setters.end(), [&](const Setter& each) { return each.op == set->op(); });
    const auto inputs = data_inputs(*set);
    if (setter == setters.end() || inputs.size() <= setter->item) return;
    if (body.argument(inputs[setter->list]) != i) return;
    const auto readers = body.readers_of_argument(i);
    if (readers.size() != 1 || readers[0] != set || !plan_.condition->readers_of_argument(i).empty()) return;
    for (std::size_t k = 0; k < count(); ++k) {
      if (k != i && (body.argument(body.results()[k]) == i || body.source_of(body.results()[k]).node == set->name()))
        return;
    }
    const TensorName made = around_.source_of(plan_.initial[i]);
    const NodeDef* list = around_.node_of(made);
    if (list == nullptr) return;
    if (setter->index == none) {
      if (list->op() != "EmptyTensorList") return;
      roles_[i] = Role::list;
    } else {
      const bool is_array = list->op() == "TensorArrayV3";
      if (!is_array && list->op() != "TensorListReserve") return;
      const onnx::Value* length = around_.try_value(data_inputs(*list).at(is_array ? 0 : 1));
      if (length == nullptr) return;
      const auto counter = body.argument(inputs[setter->index]);
      const auto known = node_.ints_in(length);
      const NodeDef* place = body.node_of(body.source_of(inputs[setter->index]));
      if (counter && roles_[*counter] == Role::counter) {
        // Fewer iterations than elements would leave some elements unset.
        const bool is_whole = std::all_of(bounds.begin(), bounds.end(),
                                          [&](const onnx::Value* bound) { return is_equal(*bound, *length); });
        const auto turns = node_.ints_in(trip_);
        if (!is_whole && !(turns && known && *turns == *known)) return;
        roles_[i] = Role::list;
      } else if (known == Ints{1} && place != nullptr && place->op() == "Const" && place->attr().contains("value")) {
        if (read_scalar(place->attr().at("value").tensor()) != 0.0) return;
        roles_[i] = Role::last;
      } else {
        return;
      }
    }
    body.give_item_of(*set, setter->item);
  }

  onnx::Node* make_node() {
    std::vector<onnx::Value*> inputs{trip_, nullptr};
    if (trip_ != nullptr) {
      // ONNX allows an absent condition, but TensorRT 10 then reports that an "input was not registered" in the body.
      inputs[1] = node_.constant_of(onnx::TensorData::scalar_of(onnx::ElementType::boolean, 1));
    } else {
      inputs[1] =
          node_.cast(plan_.condition->convert(node_.graph(), initial_, captured_)[0], onnx::ElementType::boolean);
    }
    std::vector<std::string> hints;
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] == Role::carried) {
        inputs.push_back(initial_[i]);
        shapes_.push_back(initial_[i]->shape);
        hints.push_back(node_.name() + ":Loop");
      }
    }
    for (const Role role : roles_) {
      if (role == Role::list || role == Role::last) hints.push_back(node_.name() + ":Loop");
    }
    if (hints.empty())
      node_.fail(
          "the loop has no variables except counters and values that stay the same, so that the ONNX Loop would have "
          "no result");
    onnx::Node* loop = node_.graph().add_node("Loop", inputs, hints);
    loop->name = node_.name();
    return loop;
  }

  /// Builds the body. Returns false if shapes of variables became dynamic, so that the body must be built again.
  bool fill_body(onnx::Node& loop) {
    onnx::Graph& graph = add_graph(loop, "body");
    NodeBuilder builder(graph, contents_, constants_, node_.name() + ":body", node_.op());
    onnx::Value* turn = graph.add_input(graph.unique_name(node_.name() + ":turn"));
    onnx::Value* going = graph.add_input(graph.unique_name(node_.name() + ":going"));
    turn->type = onnx::ElementType::i64;
    going->type = onnx::ElementType::boolean;
    turn->shape = going->shape = Shape{};
    std::vector<onnx::Value*> arguments = initial_;
    std::size_t carried = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] == Role::carried) {
        arguments[i] = graph.add_input(graph.unique_name(fmt::format("{}:variable_{}", node_.name(), i)));
        arguments[i]->type = initial_[i]->type;
        arguments[i]->shape = shapes_[carried++];
      } else if (roles_[i] == Role::counter) {
        arguments[i] = builder.cast(turn, initial_[i]->type.value_or(onnx::ElementType::i32));
      } else if (roles_[i] != Role::invariant) {
        arguments[i] = nullptr;
      }
    }
    std::vector<onnx::Value*> next = plan_.body->convert(graph, arguments, captured_);
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] == Role::invariant || roles_[i] == Role::counter) {
        next[i] = arguments[i];
      } else if (next[i] == nullptr) {
        node_.fail(fmt::format("Graft does not convert result {} of its body", i));
      }
    }
    if (open_shapes(next)) {
      forget(graph);
      node_.graph().remove_attribute(loop, "body");
      return false;
    }
    onnx::Value* again = going;
    if (trip_ == nullptr) {
      again = builder.cast(plan_.condition->convert(graph, next, captured_)[0], onnx::ElementType::boolean);
    }
    add_result(builder, again);
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] == Role::carried) add_result(builder, next[i]);
    }
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] == Role::list || roles_[i] == Role::last) add_result(builder, next[i]);
    }
    return true;
  }

  bool open_shapes(const std::vector<onnx::Value*>& next) {
    bool is_changed = false;
    std::size_t carried = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] != Role::carried) continue;
      std::optional<Shape>& shape = shapes_[carried++];
      if (!shape) continue;
      if (!next[i]->shape || next[i]->shape->size() != shape->size()) {
        // The shape of the result is unknown, so the known shape of the variable may not hold in later iterations.
        shape.reset();
        is_changed = true;
        continue;
      }
      for (std::size_t k = 0; k < shape->size(); ++k) {
        if ((*shape)[k] == (*next[i]->shape)[k] || onnx::is_unknown((*shape)[k])) continue;
        (*shape)[k] = onnx::unknown_dim();
        is_changed = true;
      }
    }
    return is_changed;
  }

  void forget(const onnx::Graph& graph) {
    for (const onnx::Value* value : graph.values()) contents_.erase(value);
    graph.for_each_node([&](const onnx::Node& node) {
      for (const onnx::Graph* inner : node.subgraphs()) {
        for (const onnx::Value* value : inner->values()) contents_.erase(value);
      }
    });
  }

  void give(onnx::Node& loop) {
    const auto& body = *loop.attribute("body")->get<std::unique_ptr<onnx::Graph>>();
    std::size_t output = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] != Role::carried) continue;
      onnx::Value* value = loop.outputs[output];
      value->type = body->outputs()[output + 1]->type;
      value->shape = shapes_[output];
      node_.give(i, value);
      ++output;
    }
    for (std::size_t i = 0; i < count(); ++i) {
      if (roles_[i] == Role::invariant) {
        if (initial_[i] != nullptr) node_.give(i, initial_[i]);
      } else if (roles_[i] == Role::counter) {
        node_.give(i, node_.cast(trip_, initial_[i]->type.value_or(onnx::ElementType::i32)));
      } else if (roles_[i] != Role::carried) {
        onnx::Value* value = loop.outputs[output];
        const onnx::Value& item = *body->outputs()[output + 1];
        ++output;
        value->type = item.type;
        if (item.shape) {
          const auto turns = node_.ints_in(trip_);
          value->shape = Shape{turns && turns->size() == 1 ? Dim(turns->front()) : onnx::unknown_dim()};
          value->shape->insert(value->shape->end(), item.shape->begin(), item.shape->end());
        }
        if (roles_[i] == Role::last) {
          value = node_.add("Slice", {value, node_.ints_of({-1}), node_.ints_of({to_the_end}), node_.ints_of({0})});
        }
        node_.give(i, value);
      }
    }
  }

  LoopPlan& plan_;
  NodeConverter& node_;
  const Scope& around_;
  std::vector<onnx::Value*> initial_;
  std::map<TensorName, onnx::Value*> captured_;
  onnx::ContentsMap& contents_;
  ConstantBudget& constants_;
  std::vector<Role> roles_;
  std::vector<std::optional<Shape>> shapes_;  ///< The shapes of the loop-carried variables.
  /// The number of iterations if it is fixed before the loop begins, otherwise null.
  onnx::Value* trip_ = nullptr;
};

}  // namespace

void Scope::convert_loop(const NodeDef& node, NodeConverter& converter) {
  LoopPlan& plan = loops_.at(&node);
  std::vector<onnx::Value*> initial;
  for (const TensorName& name : plan.initial) initial.push_back(try_value(name));
  std::map<TensorName, onnx::Value*> captured;
  for (const TensorName& name : plan.captures) captured.emplace(name, try_value(name));
  LoopConverter(plan, converter, *this, std::move(initial), std::move(captured), reading_).run();
}

void Scope::convert_branches(const NodeDef& node, NodeConverter& converter) {
  BranchPlan& plan = branches_.at(&node);
  std::vector<onnx::Value*> arguments;
  for (std::size_t i = 1; i < converter.input_count(); ++i) arguments.push_back(converter.input(i));
  if (const auto known = converter.constant(0)) {
    if (const auto number = known->scalar()) {
      const auto results = (*number != 0 ? plan.when_true : plan.when_false)->convert(*graph_, arguments);
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i] != nullptr) converter.give(i, results[i]);
      }
      return;
    }
  }
  const std::size_t count = plan.when_true->results().size();
  if (count == 0) return;
  onnx::Value* condition = converter.cast(converter.input(0), onnx::ElementType::boolean);
  onnx::Node* branch = graph_->add_node("If", {condition}, std::vector<std::string>(count, node.name() + ":If"));
  branch->name = node.name();
  for (const bool side : {true, false}) {
    onnx::Graph& graph = add_graph(*branch, side ? "then_branch" : "else_branch");
    const auto results = (side ? plan.when_true : plan.when_false)->convert(graph, arguments);
    NodeBuilder builder(graph, reading_.contents, reading_.constants, node.name() + (side ? ":then" : ":else"),
                        node.op());
    for (std::size_t i = 0; i < count; ++i) {
      if (results[i] == nullptr)
        converter.fail(fmt::format("Graft does not convert result {} of one of its branches", i));
      add_result(builder, results[i]);
      onnx::Value& output = *branch->outputs[i];
      const onnx::Value& value = *graph.outputs()[i];
      if (side) {
        output.type = value.type;
        output.shape = value.shape;
      } else if (!output.shape || !value.shape || output.shape->size() != value.shape->size()) {
        output.shape.reset();
      } else {
        for (std::size_t k = 0; k < value.shape->size(); ++k) {
          if ((*output.shape)[k] != (*value.shape)[k]) (*output.shape)[k] = onnx::unknown_dim();
        }
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) converter.give(i, branch->outputs[i]);
}

}  // namespace graft::tensorflow
