// Facts about a model: the format that it was read from, its inputs and outputs, and the number of its nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "graft/report/field.hpp"

namespace graft::report {

/// The nodes of one operator of the original network that have no counterpart in the ONNX model, and the reason.
struct LeftOut {
  std::string op;
  std::string why;
  std::size_t count = 0;

  static constexpr auto fields() {
    return std::tuple{field("op", "operator", &LeftOut::op, "The operator."),
                      field("count", &LeftOut::count, "The number of nodes."),
                      field("why", &LeftOut::why, "Why the model does not need the nodes.")};
  }
};

/// The original network, in the format from which the model was read.
struct Origin {
  std::string format;     ///< The format: "TensorFlow graph" or "Caffe network"; empty for ONNX.
  std::string unit;       ///< The format's word for a node: "node" or "layer".
  std::size_t nodes = 0;  ///< The number of nodes in the file after functions are inlined.
  std::map<std::string, std::size_t, std::less<>> operators;
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes;  ///< Remarks on the files that are shown to the user.
  std::size_t renamed = 0;

  /// Adds 1 to the count of `op` and `why` in `left_out`, for a node without a counterpart in the model.
  void leave_out(std::string_view op, std::string_view why) {
    const auto same =
        std::ranges::find_if(left_out, [&](const LeftOut& entry) { return entry.op == op && entry.why == why; });
    if (same != left_out.end()) {
      ++same->count;
    } else {
      left_out.push_back({.op = std::string(op), .why = std::string(why), .count = 1});
    }
  }
  /// Returns the origin of an imported model, or nothing for an ONNX model.
  [[nodiscard]] std::optional<Origin> if_imported() const {
    return format.empty() ? std::nullopt : std::optional(*this);
  }

  static constexpr auto fields() {
    return std::tuple{field("format", &Origin::format, "'TensorFlow graph' or 'Caffe network'."),
                      field("nodes", &Origin::nodes, "The number of nodes in the file, with functions inlined."),
                      field("operators", &Origin::operators,
                            "The number of converted nodes by operator, without constants and inputs."),
                      field("left_out", &Origin::left_out, "The nodes that have no counterpart in the model."),
                      field("renamed", "tensors_renamed", &Origin::renamed,
                            "The number of tensors that could not keep their names because another tensor has the "
                            "name.")};
  }
};

/// An input or an output of a model, with the names of dynamic dimensions.
struct ModelPort {
  std::string name;
  std::string type;
  std::optional<std::vector<std::variant<std::int64_t, std::string>>> shape;

  static constexpr auto fields() {
    return std::tuple{field("name", &ModelPort::name, "The name."),
                      field("type", &ModelPort::type, "The type, such as 'f32'; '?' where the file has no type."),
                      field("shape", &ModelPort::shape,
                            "The sizes: a number, a symbol, or '?' for an unknown dimension; null where not even the "
                            "rank is known.")};
  }
};

/// The number of nodes in the graph and in the subgraphs of its nodes, such as the bodies of Loop and If. The bodies of
/// functions are not counted.
struct NodeCounts {
  std::size_t nodes = 0;      ///< The number of all nodes except Constant nodes.
  std::size_t constants = 0;  ///< The number of Constant nodes.
  /// The number of nodes in subgraphs of other nodes. NodeCounts::nodes or NodeCounts::constants counts these nodes
  /// too.
  std::size_t in_bodies = 0;

  [[nodiscard]] std::size_t all() const { return nodes + constants; }
};

}  // namespace graft::report
