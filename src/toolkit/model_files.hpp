// The files of a network of any format.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graft::toolkit {

struct ModelFiles {
  std::filesystem::path model;
  std::filesystem::path weights = {};     ///< The .caffemodel of a Caffe network.
  std::vector<std::string> outputs = {};  ///< See ImportOptions::outputs.
};

}  // namespace graft::toolkit
