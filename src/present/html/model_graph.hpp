// Adds the graphs of a model to a report.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/report/graph.hpp"
#include "present/html/report.hpp"

namespace graft::html {

/// The Place of each node and tensor of a model in a report.
struct ModelPlaces {
  /// The places of all nodes in the order of ModelGraph::for_each_node; nothing for a node that is not drawn.
  std::vector<std::optional<Place>> nodes;
  /// The places of nodes by NodeRef::id. An id may have several places, since branches may use the same name.
  std::multimap<std::string, Place, std::less<>> by_id;
  /// The places of tensors by name: the node that computes the tensor, then the graph output, if it is one.
  std::multimap<std::string, Place, std::less<>> tensors;
};

/// Adds the main graph, then its sub-graphs. Constants and dequantized constants are part of the nodes that read them;
/// graph inputs and outputs are nodes of their own.
[[nodiscard]] ModelPlaces add_graphs(Report& report, const report::ModelGraph& graph, const std::string& title);

}  // namespace graft::html
