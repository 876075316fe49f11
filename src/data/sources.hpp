// Sources of data, as users write them: NAME=FILE.npy, FILE.npz:ARRAY, a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/inputs.hpp"
#include "graft/setting.hpp"
#include "runtime/engine.hpp"

namespace graft::data {

/// A source of data: [NAME=]FILE.npy, [NAME=]FILE.npz[:ARRAY], an image, or a folder of such files. A text that is the
/// path of a file or a folder has no name, even if it contains an equals sign.
struct Source {
  std::string text;
  std::string name;  ///< The name of the input; may be empty.
  std::filesystem::path file;
  std::string array;  ///< The name of the array in an archive; may be empty.
};

[[nodiscard]] Source parse_source(const std::string& text);

/// Returns whether a path is a folder.
[[nodiscard]] bool is_folder(const std::filesystem::path& path);

/// Returns the names and shapes of the arrays that the sources name, without a network: those of NAME=FILE.npy,
/// NAME=FILE.npz:ARRAY and the arrays of FILE.npz. Other sources, and files that cannot be read, have no shapes.
[[nodiscard]] std::map<std::string, std::vector<std::int64_t>, std::less<>> named_shapes(
    const std::vector<std::string>& sources);

/// An array that is read when it is needed. Several threads may read it.
struct Array {
  std::string place;  ///< The file and the array, for messages.
  /// Type and dimensions, which are known before the array is read; absent for an image, whose `read` checks them.
  std::optional<onnx::ElementType> type = {};
  std::vector<std::int64_t> dims = {};
  Fit fit = {};
  std::function<onnx::TensorData()> read;
};

/// The arrays for an input, in the order of the files.
struct Column {
  Input input;
  std::vector<Array> arrays;
  bool is_folder = false;  ///< Whether the arrays are those of the files of a folder.
  bool is_images = false;
};

/// The arrays of all inputs, and remarks on how they are used.
struct Columns {
  std::vector<Column> list;
  std::string identity;  ///< A string that identifies the data: the names of the files, their sizes, the recipe.
  std::vector<std::string> notes;
};

struct SourceOptions {
  Setting setting = Setting::data;  ///< The name of the data in messages.
  std::filesystem::path recipe = {};
  std::int64_t files = 0;  ///< Maximum number of files of a folder, which are evenly spread over it; 0: all.
};

/// Finds the arrays for the inputs. Only headers are read. Throws Error naming the source or the file: for a file that
/// cannot be read, a name that no input has, an input without an array, and an array that does not fit its input.
[[nodiscard]] Columns open_sources(const std::vector<std::string>& sources, const Inputs& inputs,
                                   const SourceOptions& options);

/// Returns tensors in memory as columns, one for each input, as open_sources does for files. If the network has a
/// single input, its tensor may have the empty name. Throws Error for a name that no input has, an input without a
/// tensor, and a tensor that does not fit its input.
[[nodiscard]] Columns open_tensors(const runtime::TensorMap& tensors, const Inputs& inputs,
                                   const SourceOptions& options);

}  // namespace graft::data
