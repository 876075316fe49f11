// Writes a row for each tensor.
#include "present/text/tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace graft::present {

Table outputs_table(const std::vector<report::Port>& outputs) {
  Table table;
  for (const report::Port& output : outputs) {
    const std::string dims = fmt::format("{}", fmt::join(*output.shape, "x"));
    table.add({output.name, fmt::format("{} {}", output.type, dims.empty() ? "scalar" : dims)});
  }
  return table;
}

}  // namespace graft::present
