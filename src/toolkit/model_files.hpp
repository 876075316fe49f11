// The files of a network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graft::toolkit {

/// Of any format.
struct ModelFiles {
  std::filesystem::path model;
  std::filesystem::path weights = {};     ///< Of a Caffe network.
  std::vector<std::string> outputs = {};  ///< As ImportOptions::outputs.
};

}  // namespace graft::toolkit
