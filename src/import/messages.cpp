// Finds similar names, first by the parts of a scope, then by spelling.
#include "import/messages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/suggest.hpp"
#include "graft/setting.hpp"

namespace graft {

std::string did_you_mean(const std::string& name, std::vector<std::string> names) {
  constexpr std::size_t most = 20000;  // Comparing more names takes seconds.
  constexpr std::size_t few = 3;
  std::sort(names.begin(), names.end());
  std::vector<std::string> in_scopes;
  for (const std::string& other : names) {
    if (("/" + other + "/").find("/" + name + "/") != std::string::npos) in_scopes.push_back(other);
  }
  if (!in_scopes.empty()) {
    const std::size_t more = in_scopes.size() - std::min(few, in_scopes.size());
    in_scopes.resize(in_scopes.size() - more);
    return fmt::format("; did you mean {}{}?", fmt::join(in_scopes, " or "),
                       more == 0 ? "" : fmt::format(" or one of {} more", more));
  }
  const auto meant = names.size() <= most ? nearest(name, names) : std::nullopt;
  return meant ? fmt::format("; did you mean {}?", *meant)
               : fmt::format("; `graft inspect` without {} lists the outputs of the network",
                             setting_name(Setting::kept_outputs));
}

std::string give_shapes() {
  return fmt::format("set the shapes of the inputs with {}", setting_name(Setting::input_shapes));
}

std::string inputs_text(const onnx::Graph& graph) {
  std::vector<std::string> inputs;
  for (const onnx::Value* input : graph.inputs()) {
    inputs.push_back(fmt::format("{} {}", input->name, input->shape ? to_string(*input->shape) : ""));
  }
  return inputs.empty() ? "the network has no inputs" : fmt::format("its inputs are {}", fmt::join(inputs, ", "));
}

}  // namespace graft
