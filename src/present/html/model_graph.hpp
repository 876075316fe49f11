// The graphs of a model as they are drawn.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"
#include "present/html/report.hpp"

namespace graft::report {

/// Where the nodes and tensors of a model stand in a report.
struct ModelPlaces {
  std::unordered_map<const graft::onnx::Node*, Place> nodes;
  std::multimap<std::string, Place, std::less<>> by_id;  ///< By NodeRef::id; branches may use a name again.
  /// The node that gives it, then the output of the graph that it is.
  std::multimap<std::string, Place, std::less<>> tensors;
};

/// Adds the main graph, then its sub-graphs. Constants, and what is dequantized of them, are part of the nodes that
/// read them; inputs and outputs are nodes of their own.
[[nodiscard]] ModelPlaces add_graphs(Report& report, const onnx::Model& model, const std::string& title);

}  // namespace graft::report
