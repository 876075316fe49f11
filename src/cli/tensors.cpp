// Reads tensors and warns about NaN.
#include "cli/tensors.hpp"

#include <filesystem>

namespace graft::cli {

toolkit::Tensors read_tensors(const Console& console, const std::string& option,
                              const std::vector<std::string>& sources) {
  toolkit::Tensors tensors = toolkit::read_tensors(sources, option);
  for (const std::string& warning : toolkit::nan_warnings(tensors, option)) console.warn(warning);
  return tensors;
}

std::vector<NamedFile> tensor_files(const std::string& option, const std::vector<std::string>& sources) {
  std::vector<NamedFile> files;
  for (const std::filesystem::path& file : toolkit::tensor_files(sources)) {
    files.push_back({"a file of " + option, file.string()});
  }
  return files;
}

}  // namespace graft::cli
