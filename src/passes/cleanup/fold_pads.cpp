// Pass fold_pads: turns a Pad before a convolution or a pool into padding of that layer, where that is exact.
//
//   Conv(Pad(x, 1))            becomes   Conv<pads=[1, 1, 1, 1]>(x)
//   AveragePool(Pad(x, 1))     becomes   AveragePool<pads=[1, 1, 1, 1], count_include_pad=1>(x)
//   MaxPool(Pad(Relu(x), 1))   becomes   MaxPool<pads=[1, 1, 1, 1]>(Relu(x))
//
// Pass unwrap_pads: removes an Unsqueeze and a Squeeze around a Pad, with which paddle2onnx writes every F.pad of an
// image.
//
//   Squeeze(Pad(Unsqueeze(x)))   becomes   Pad(x), where the added axes are not padded
//
// TensorFlow and PyTorch write tf.pad or ZeroPad2d before a layer without padding. A convolution pads with zeros. An
// average pool counts its padding only with count_include_pad. A max pool pads with a value below any number, so the
// Pad must fill in -infinity, or zeros if no number of its input is negative.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/schema.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

using Pads = std::vector<std::int64_t>;

struct Padding {
  Pads pads;  ///< The padding of the spatial axes: all begins, then all ends.
  double value = 0;
};

std::optional<Padding> padding_of(const onnx::Node& pad, std::string& why_not) {
  const auto fail = [&](std::string reason) {
    why_not = std::move(reason);
    return std::nullopt;
  };
  if (const std::string mode = pad.string_or("mode", "constant"); mode != "constant") {
    return fail(fmt::format("the mode of the Pad is {}; only constant padding can become padding of the layer", mode));
  }
  const auto constant = pad.input(1) == nullptr ? std::nullopt : pad.input(1)->constant();
  const auto all = constant ? constant->ints() : std::nullopt;
  if (!all || all->size() < 6 || all->size() % 2 != 0 || pad.input(3) != nullptr) {
    return fail("the pads of the Pad are not a constant for all axes");
  }
  const std::size_t rank = all->size() / 2;
  const auto spatial = [&](std::size_t from) { return all->begin() + static_cast<std::ptrdiff_t>(from); };
  if ((*all)[0] != 0 || (*all)[1] != 0 || (*all)[rank] != 0 || (*all)[rank + 1] != 0) {
    return fail("the Pad pads the batch or the channels");
  }
  if (std::any_of(all->begin(), all->end(), [](std::int64_t size) { return size < 0; }))
    return fail("the Pad crops (negative pads)");
  Padding padding;
  padding.pads.assign(spatial(2), spatial(rank));
  padding.pads.insert(padding.pads.end(), spatial(rank + 2), all->end());
  if (pad.input(2) != nullptr) {
    const auto value = pad.input(2)->constant();
    const auto number = value ? value->scalar() : std::nullopt;
    if (!number) return fail("the value that the Pad fills in is not a constant");
    padding.value = *number;
  }
  return padding;
}

/// Returns whether the node that computes a value cannot return numbers below 0, as a Relu cannot.
bool is_not_negative(const onnx::Value& value) {
  const onnx::Node* node = value.producer;
  if (node == nullptr) return false;
  if (node->is("Clip")) {
    const auto least = node->input(1) == nullptr ? std::nullopt : node->input(1)->constant();
    return least && least->scalar().value_or(-1) >= 0;
  }
  return has_trait(*node, onnx::trait::not_negative);
}

/// Returns why `padding` cannot be merged into the attribute `pads` of `layer`, a Conv or a pool that reads the Pad, or
/// an empty string if it can. `x` is the input of the Pad.
std::string obstacle_of(const onnx::Node& layer, const Padding& padding, const onnx::Value& x) {
  const std::size_t count = padding.pads.size();
  const Pads own = layer.ints("pads").value_or(Pads(count, 0));
  if (layer.string_or("auto_pad", "NOTSET") != "NOTSET")
    return "the layer has auto_pad, which computes its own padding";
  if (own.size() != count) return "the pads of the layer and of the Pad have different numbers of axes";
  if (layer.is("Conv")) {
    return padding.value == 0 ? "" : fmt::format("the Pad fills in {}, but a convolution pads with 0", padding.value);
  }
  if (layer.int_or("ceil_mode", 0) != 0)
    return "the pool rounds its output size up (ceil_mode), and the size depends on the padding";
  const auto kernel = layer.ints("kernel_shape").value_or(Pads{});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t axis = i % (count / 2);
    if (axis >= kernel.size() || own[i] + padding.pads[i] >= kernel[axis]) {
      return "a window of the pool would lie entirely in the padding";
    }
  }
  const bool pads_itself = std::any_of(own.begin(), own.end(), [](std::int64_t size) { return size != 0; });
  if (layer.is("AveragePool")) {
    if (padding.value != 0) return fmt::format("the Pad fills in {}, but an average pool pads with 0", padding.value);
    const bool counts = layer.int_or("count_include_pad", 0) != 0;
    return pads_itself && !counts ? "the pool counts the zeros of the Pad, but not the zeros of its own padding" : "";
  }
  const bool smallest = padding.value == -std::numeric_limits<double>::infinity();
  const bool zeros_do_no_harm = padding.value == 0 && is_not_negative(x);
  if (!smallest && !zeros_do_no_harm) {
    return fmt::format(
        "the Pad fills in {}, which can be larger than the elements next to it; a max pool pads with the lowest value",
        padding.value);
  }
  return "";
}

void propose(Rewriter& rewriter, onnx::Node& pad, onnx::Node& layer, const Padding& padding) {
  Pads sum = layer.ints("pads").value_or(Pads(padding.pads.size(), 0));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += padding.pads[i];
  Proposal proposal{.nodes = {&pad, &layer},
                    .inputs = {pad.input(0)},
                    .outputs = {layer.output()},
                    .replacement = fmt::format("{} with pads [{}]", layer.op_type, fmt::join(sum, ", ")),
                    .reason = "the layer pads by itself",
                    .edit = [x = pad.input(0)->name, y = layer.output()->name, sum](onnx::Graph& edited) {
                      onnx::Node& node = *edited.find(y)->producer;
                      edited.set_input(node, 0, edited.find(x));
                      node.attributes.insert_or_assign("pads", onnx::NodeAttribute(onnx::AttributeData(sum)));
                      if (!node.is("AveragePool")) return;
                      node.attributes.insert_or_assign("count_include_pad",
                                                       onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1})));
                    }};
  if (layer.is("MaxPool") && padding.value == 0) {
    // The region of the proof includes the node that computes elements of at least 0, without which the rewrite is not
    // exact.
    onnx::Node* source = pad.input(0)->producer;
    proposal.nodes.insert(proposal.nodes.begin(), source);
    proposal.inputs.clear();
    for (onnx::Value* input : source->inputs) {
      if (input != nullptr && !input->constant()) proposal.inputs.push_back(input);
    }
  }
  rewriter.apply(proposal);
}

/// Returns the axes of a Squeeze or Unsqueeze, sorted and counted from the front. `rank` is the rank of the larger
/// tensor.
std::vector<std::int64_t> axes_of(const onnx::Node& node, std::int64_t rank) {
  const auto constant = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant();
  auto axes = constant ? constant->ints().value_or(Pads{}) : Pads{};
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// Returns the pads without the entries of the listed axes, or nothing if a listed axis is padded.
std::optional<Pads> pads_without(const Pads& pads, const std::vector<std::int64_t>& axes) {
  const auto rank = static_cast<std::int64_t>(pads.size() / 2);
  Pads result;
  for (std::size_t i = 0; i < pads.size(); ++i) {
    const bool is_listed = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i) % rank);
    if (!is_listed) {
      result.push_back(pads[i]);
    } else if (pads[i] != 0) {
      return std::nullopt;
    }
  }
  return result;
}

void unwrap_pad(Rewriter& rewriter, onnx::Node& squeeze) {
  const auto before = [&](const onnx::Node& node, std::string_view type) -> onnx::Node* {
    const onnx::Value* value = node.input(0);
    onnx::Node* producer = value == nullptr || value->graph != squeeze.graph ? nullptr : value->producer;
    const bool is_alone = producer != nullptr && value->uses.size() == 1 && !value->is_output();
    return is_alone && producer->is(type) ? producer : nullptr;
  };
  onnx::Node* pad = before(squeeze, "Pad");
  onnx::Node* unsqueeze = pad == nullptr ? nullptr : before(*pad, "Unsqueeze");
  if (unsqueeze == nullptr || pad->input(3) != nullptr) return;
  const auto constant = pad->input(1) == nullptr ? std::nullopt : pad->input(1)->constant();
  const auto all = constant ? constant->ints() : std::nullopt;
  const auto x_rank = unsqueeze->input(0)->rank();
  if (!all || all->size() % 2 != 0 || !x_rank) return;
  const auto rank = static_cast<std::int64_t>(all->size() / 2);
  const auto axes = axes_of(*unsqueeze, rank);
  const auto pads = pads_without(*all, axes);
  // Two pads must remain for each axis of x, which has at least one axis.
  const bool fits = pads && !pads->empty() && *x_rank == static_cast<std::int64_t>(pads->size() / 2);
  if (!fits || axes.empty() || axes != axes_of(squeeze, rank)) return;
  if (*x_rank + static_cast<std::int64_t>(axes.size()) != rank) return;
  const std::string mode = pad->string_or("mode", "constant");
  if (pad->input(2) != nullptr && !pad->input(2)->constant()) return;
  const std::string filling = pad->input(2) == nullptr ? "" : pad->input(2)->name;
  rewriter.apply({.nodes = {unsqueeze, pad, &squeeze},
                  .inputs = {unsqueeze->input(0)},
                  .outputs = {squeeze.output()},
                  .replacement = fmt::format("Pad<mode=\"{}\"> with pads [{}]", mode, fmt::join(*pads, ", ")),
                  .reason = "the axes that are added for the Pad are not padded",
                  // OpenVINO does not have the mode wrap, so that there is nothing to run.
                  .by_definition = mode == "wrap" ? "by definition: a Pad pads each axis independently" : "",
                  .edit = [x = unsqueeze->input(0)->name, y = squeeze.output()->name, sizes = *pads, mode,
                           filling](onnx::Graph& edited) {
                    onnx::Node& old = *edited.find(y)->producer;
                    onnx::Value* added = edited.add_constant(y + "_pads", onnx::TensorData::from_ints(sizes));
                    std::vector<onnx::Value*> inputs{edited.find(x), added};
                    if (!filling.empty()) inputs.push_back(edited.find(filling));
                    onnx::Node* made = edited.add_node("Pad", inputs, {y + "_padded"}, &old);
                    made->name = old.name;
                    made->attributes["mode"] = onnx::NodeAttribute(onnx::AttributeData(mode));
                    edited.move_output(old, 0, *made, 0);
                  }});
}

}  // namespace

void unwrap_pads(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (node->is("Squeeze")) unwrap_pad(rewriter, *node);
    }
  }
}

void fold_pads(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* layer : graph->nodes()) {
      const bool pads = layer->is("Conv") || layer->is("MaxPool") || layer->is("AveragePool");
      onnx::Value* x = pads ? layer->input(0) : nullptr;
      onnx::Node* pad = x == nullptr ? nullptr : x->producer;
      if (pad == nullptr || !pad->is("Pad") || pad->graph != graph || layer->outputs.size() != 1) continue;
      std::string why_not;
      const auto padding = padding_of(*pad, why_not);
      if (padding) why_not = obstacle_of(*layer, *padding, *pad->input(0));
      if (why_not.empty() && x->is_output()) why_not = fmt::format("'{}' is an output of the graph", x->name);
      if (why_not.empty()) {
        propose(rewriter, *pad, *layer, *padding);
      } else {
        rewriter.near_miss("Pad before a layer that pads",
                           {.node = layer, .matched_nodes = 2, .pattern_nodes = 2, .reason = why_not});
      }
    }
  }
}

}  // namespace graft::passes
