// Reads tensors and warns about NaN.
#include "cli/tensors.hpp"

#include <fmt/format.h>

namespace graft::cli {

runtime::TensorMap read_tensors(const Console& console, const std::string& option,
                                const std::vector<std::string>& texts) {
  runtime::TensorMap tensors = toolkit::read_tensors(option, texts);
  for (const toolkit::NanCount& count : toolkit::count_nan(tensors)) {
    console.warn(fmt::format("{}: {} of {} elements of input '{}' are NaN, and so are the values computed from them",
                             option, count.nan, count.elements, count.tensor));
  }
  return tensors;
}

std::vector<NamedFile> tensor_files(const std::string& option, const std::vector<std::string>& texts) {
  std::vector<NamedFile> files;
  for (std::string& file : toolkit::tensor_files(texts)) files.push_back({"a file of " + option, std::move(file)});
  return files;
}

}  // namespace graft::cli
