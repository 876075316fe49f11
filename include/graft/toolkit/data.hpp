// Data for the inputs of a network, from files: which files there may be, and how their arrays become inputs. The
// guide "Give data to Graft" has the rules, which are the same for tensors in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

/// Files with data for the inputs of a network.
struct DataFiles {
  /// Each source is a file of NumPy (.npy, .npz), an image (.jpg, .png), or a folder of arrays or images. A name and an
  /// equals sign before it select the input, "image=images.npy"; a colon and a name after an .npz file select an array,
  /// "digits.npz:images". Both may be left out where only one input or array is possible.
  std::vector<std::string> sources = {};
  std::filesystem::path recipe =
      {};                    ///< A YAML file that describes how images are prepared (the guide "Give data to Graft").
  std::int64_t samples = 0;  ///< Maximum number of files of a folder, evenly spread over it; 0: all.
  /// The classes of the images of a folder, for the accuracy of a classifier: "folders", where the name of the folder
  /// of each image is its class, or a text file with a line NAME,CLASS for each image (the guide "Give data to Graft").
  /// Only `verify` and `quantize` to int8 and f8 read them.
  std::string labels = {};

  [[nodiscard]] bool empty() const { return sources.empty(); }
};

/// The inputs of several runs of a network.
struct DataRuns {
  std::vector<Tensors> runs;
  std::vector<std::string> notes;  ///< The conversions of arrays, arrays that are not used, and NaN; one sentence each.
};

/// Reads data for a network, converts them to the types of its inputs, and divides them into runs: one for each file of
/// a folder, and several where there are more samples than the first dimension of an input. Throws Error naming the
/// file, the array and the input for a file that cannot be read, a name that no input has, an input without an array,
/// an array of another type or shape, and different numbers of samples.
[[nodiscard]] GRAFT_API DataRuns read_data(const DataFiles& files, const Model& model);

/// Returns the files and folders of the sources, and the recipe, whether or not they exist.
[[nodiscard]] GRAFT_API std::vector<std::filesystem::path> data_paths(const DataFiles& files);

/// Returns the sources with absolute paths, for a process with another working directory.
[[nodiscard]] GRAFT_API std::vector<std::string> absolute_sources(const std::vector<std::string>& sources);

/// Loads a network for these data. A network of another format than ONNX is read with the shapes of its data, if the
/// options have none.
[[nodiscard]] GRAFT_API Model load(const std::filesystem::path& file, const ImportOptions& options,
                                   const DataFiles& files);

}  // namespace graft::toolkit
