// A transformation rewrites a pattern that ends at one node. An unknown operation before that node keeps the pattern
// from matching.
#include "runtime/openvino/isolate.hpp"

#include <memory>
#include <openvino/op/constant.hpp>

#include "runtime/openvino/pass_through.hpp"

namespace graft::runtime {

std::string failed_transformation_root(std::string_view message) {
  constexpr std::string_view begin = "END: node: ";
  if (message.find("CALLBACK HAS THROWN") == std::string_view::npos) return {};
  const std::size_t found = message.find(begin);
  if (found == std::string_view::npos) return {};
  std::string_view type = message.substr(found + begin.size());
  type = type.substr(0, type.find(' '));
  const std::size_t version = type.rfind("::");
  return std::string(version == std::string_view::npos ? type : type.substr(version + 2));
}

bool isolate_nodes(ov::Model& model, std::string_view type) {
  bool found = false;
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (node->get_type_name() != type) continue;
    for (ov::Input<ov::Node> input : node->inputs()) {
      const ov::Output<ov::Node> source = input.get_source_output();
      if (!source.get_element_type().is_real() || ov::is_type<ov::op::v0::Constant>(source.get_node())) continue;
      input.replace_source_output(std::make_shared<PassThroughNode>(source));
      found = true;
    }
  }
  if (found) model.validate_nodes_and_infer_types();
  return found;
}

}  // namespace graft::runtime
