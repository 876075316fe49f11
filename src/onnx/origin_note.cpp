// Stores one tensor name per line in the node's metadata, which runtimes ignore.
#include "onnx/origin_note.hpp"

#include <algorithm>
#include <string_view>

namespace graft::onnx {
namespace {

constexpr std::string_view key = "graft.origin";

}  // namespace

std::vector<std::string> origin_of(const Node& node) {
  const auto found = node.metadata.find(key);
  std::vector<std::string> names;
  if (found == node.metadata.end()) return names;
  std::string_view rest = found->second;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

void note_origin(Node& node, const std::vector<std::string>& tensors) {
  std::string text;
  for (const std::string& name : tensors) {
    if (name.find('\n') != std::string::npos) continue;  // No exporter writes names with a newline.
    if (!text.empty()) text += '\n';
    text += name;
  }
  if (!text.empty()) node.metadata.insert_or_assign(std::string(key), std::move(text));
}

std::vector<std::string> stands_for(const Node& node) {
  std::vector<std::string> names = origin_of(node);
  if (!names.empty()) return names;
  for (const Value* output : node.outputs) {
    if (output != nullptr) names.push_back(output->name);
  }
  return names;
}

}  // namespace graft::onnx
