// Conversion between TensorMap and .npy and .npz files.
#include "toolkit/tensor_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "io/npy.hpp"
#include "verify/compare/figures.hpp"

namespace graft::toolkit {
namespace {

onnx::TensorData to_tensor(const io::NpyArray& array) {
  onnx::TensorData tensor;
  tensor.type = array.type;
  tensor.dims = array.shape;
  tensor.bytes = onnx::Bytes(std::string(reinterpret_cast<const char*>(array.data.data()), array.data.size()));
  return tensor;
}

bool is_archive(const std::string& file) { return std::filesystem::path(file).extension() == ".npz"; }

std::string names_of(const io::NpzArrays& arrays) {
  std::string names;
  for (const auto& [name, array] : arrays) names += (names.empty() ? "" : ", ") + name;
  return names;
}

/// The parts of NAME=FILE.npz:ARRAY; name and array may be empty.
struct TensorText {
  std::string name;
  std::string file;
  std::string array;
};

TensorText parts_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {"", text, ""};
  TensorText parts{text.substr(0, equals), text.substr(equals + 1), ""};
  const std::size_t colon = parts.file.rfind(':');
  if (colon != std::string::npos && is_archive(parts.file.substr(0, colon))) {
    parts.array = parts.file.substr(colon + 1);
    parts.file.resize(colon);
  }
  return parts;
}

/// Reads the array for an input from an archive; no other array is read. Throws Error where there is no such array.
io::NpyArray choose(const io::NpzFile& archive, const std::string& input, const std::string& wanted,
                    const std::string& what) {
  const std::string& name = wanted.empty() ? input : wanted;
  if (archive.contains(name)) return archive.read(name);
  const std::vector<std::string> names = archive.names();
  if (wanted.empty() && names.size() == 1) return archive.read(names.front());
  throw Error(fmt::format("{}: the file has no array {}; it has {}\nName one: {}=FILE.npz:ARRAY", what, name,
                          fmt::join(names, ", "), input));
}

}  // namespace

runtime::TensorMap read_tensors(const std::string& option, const std::vector<std::string>& texts) {
  runtime::TensorMap tensors;
  const auto add = [&](const std::string& text, const std::string& name, const io::NpyArray& array) {
    if (!tensors.emplace(name, to_tensor(array)).second) {
      throw Error(fmt::format("{} {}: {} is given twice\nGive each input once", option, text, name));
    }
  };
  for (const std::string& text : texts) {
    const std::string what = fmt::format("{} {}", option, text);
    const auto [name, file, array] = parts_of(text);
    if (text.find('=') == std::string::npos) {
      if (!is_archive(text)) {
        throw Error(fmt::format("{}: the name is missing\nWrite NAME=FILE.npy, NAME=FILE.npz:ARRAY or FILE.npz", what));
      }
      for (const auto& [key, values] : io::read_npz(text)) add(text, key, values);
      continue;
    }
    if (std::filesystem::is_directory(file)) {
      throw Error(fmt::format("{}: this is a folder\nOnly {} accepts a folder, without a name", what,
                              setting_name(Setting::quantize_int8)));
    }
    if (name.empty() || file.empty()) {
      throw Error(fmt::format(
          "{}: the name or the file is missing\nWrite NAME=FILE.npy, NAME=FILE.npz:ARRAY or FILE.npz", what));
    }
    if (is_archive(file)) {
      add(text, name, choose(io::NpzFile(file), name, array, what));
    } else {
      add(text, name, io::read_npy(file));
    }
  }
  return tensors;
}

std::vector<std::string> tensor_files(const std::vector<std::string>& texts) {
  std::vector<std::string> files;
  for (const std::string& text : texts) files.push_back(parts_of(text).file);
  return files;
}

std::vector<NanCount> count_nan(const runtime::TensorMap& tensors) {
  std::vector<NanCount> counts;
  for (const auto& [name, tensor] : tensors) {
    const verify::TensorRange range = verify::range_of(tensor);
    if (range.nan != 0) counts.push_back({.tensor = name, .nan = range.nan, .elements = range.count});
  }
  return counts;
}

void check_tensor_file(const std::string& path) {
  const std::filesystem::path end = std::filesystem::path(path).extension();
  if (end == ".npz" || end == ".npy") return;
  throw Error(fmt::format(
      "-o {}: results are written as NumPy's files\nEnd the name in .npz, or in .npy for one output", path));
}

void write_tensors(const std::string& path, const runtime::TensorMap& tensors) {
  io::NpzArrays arrays;
  for (const auto& [name, tensor] : tensors) {
    if (bits_of(tensor.type) < 8) {
      throw Error(
          fmt::format("{}: output {} is {}, which NumPy's files cannot contain", path, name, to_string(tensor.type)));
    }
    io::NpyArray array{.type = tensor.type, .shape = tensor.dims, .data = std::vector<std::byte>(tensor.bytes.size())};
    if (!array.data.empty()) std::memcpy(array.data.data(), tensor.bytes.data(), array.data.size());
    arrays.emplace(name, std::move(array));
  }
  if (is_archive(path)) {
    write_npz(path, arrays);
    return;
  }
  if (arrays.size() != 1) {
    throw Error(
        fmt::format("-o {}: a .npy file contains one array, and the model has {} outputs: {}\nEnd the name in .npz",
                    path, arrays.size(), names_of(arrays)));
  }
  write_npy(path, arrays.begin()->second);
}

}  // namespace graft::toolkit
