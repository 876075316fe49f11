// Writes a row for each layer.
#include "present/text/engine_layers_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace graft::present {
namespace {

std::string types_of(const std::vector<report::EngineTensor>& tensors) {
  std::string text;
  for (const report::EngineTensor& tensor : tensors) text += (text.empty() ? "" : ", ") + tensor.type;
  return text;
}

std::string text_of_reads(const report::EngineLayers::Counts& reads, std::size_t without_inputs = 0) {
  std::string text;
  for (const auto& [type, count] : reads) {
    text += fmt::format("{}{} read{} {}", text.empty() ? "" : ", ", count, count == 1 ? "s" : "", type);
  }
  if (text.empty()) return "none has an input";
  if (without_inputs != 0) text += fmt::format(", {} read{} no tensor", without_inputs, without_inputs == 1 ? "s" : "");
  return text;
}

}  // namespace

Listing engine_layers_text(const report::EngineLayers& engine) {
  Listing text;
  if (!engine.unknown.empty()) return text;
  Table table;
  for (const report::EngineLayer& layer : engine.layers) {
    const std::string nodes = fmt::format("{}", fmt::join(layer.nodes, ", "));
    table.add({{layer.kind, layer.is_matrix ? Color::strong : Color::none},
               fmt::format("{} -> {}", types_of(layer.inputs), types_of(layer.outputs)),
               nodes.empty() ? Cell(layer.name, Color::faint) : Cell(nodes)});
  }
  text.add("");
  text.add("Kernels of the engine: types of their inputs and outputs, and the model's nodes in them");
  text.add(std::move(table));
  const auto without_inputs = static_cast<std::size_t>(
      std::ranges::count_if(engine.layers, [](const report::EngineLayer& layer) { return layer.inputs.empty(); }));
  text.add(
      fmt::format("{}: {}", count_text(engine.layers.size(), "kernel"), text_of_reads(engine.reads(), without_inputs)));
  const std::size_t matrices = engine.matrix_layers().size();
  if (matrices != 0) {
    text.add(fmt::format(
        "{}: {}",
        count_text(matrices, "convolution or matrix multiplication", "convolutions and matrix multiplications"),
        text_of_reads(engine.matrix_reads())));
  }
  for (const report::FloatIsland& island : engine.islands) {
    text.add(fmt::format("note: {} reads {}, although QuantizeLinear and DequantizeLinear precede it",
                         island.node_text(), island.type));
  }
  return text;
}

}  // namespace graft::present
