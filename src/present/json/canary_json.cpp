// Lists the folder's files and counts the tensors that the canary compares.
#include "present/json/canary_json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace graft::present {

std::string canary_command(const toolkit::CanaryResult& result) {
  return fmt::format("python3 {}/run_canary.py", result.folder.string());
}

std::size_t output_count(const toolkit::CanaryResult& result) {
  return static_cast<std::size_t>(std::count_if(result.tensors.begin(), result.tensors.end(),
                                                [](const toolkit::CanaryTensor& tensor) { return tensor.is_output; }));
}

Json to_json(const toolkit::CanaryResult& result) {
  Json left_out = Json::array();
  for (const toolkit::CanaryOmission& omission : result.left_out) {
    left_out.push_back({{"tensor", omission.tensor}, {"output", omission.is_output}, {"why", omission.why}});
  }
  return {{"model", result.model}, {"folder", result.folder.string()}, {"files", result.files},
          {"runs", result.runs},   {"tensors", result.tensors.size()}, {"outputs", output_count(result)},
          {"left_out", left_out},  {"next", {canary_command(result)}}};
}

}  // namespace graft::present
