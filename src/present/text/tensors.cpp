// Writes a row or a JSON object for each tensor.
#include "present/text/tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace graft::present {

Table outputs_table(const runtime::TensorMap& tensors) {
  Table table;
  for (const auto& [name, tensor] : tensors) {
    const std::string dims = fmt::format("{}", fmt::join(tensor.dims, "x"));
    table.add({name, fmt::format("{} {}", to_string(tensor.type), dims.empty() ? "scalar" : dims)});
  }
  return table;
}

Json outputs_json(const runtime::TensorMap& tensors) {
  Json listed = Json::array();
  for (const auto& [name, tensor] : tensors) {
    listed.push_back({{"name", name}, {"type", to_string(tensor.type)}, {"shape", tensor.dims}});
  }
  return listed;
}

}  // namespace graft::present
