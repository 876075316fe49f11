// Reads and writes tensors as .npy and .npz files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/tensor.hpp"
#include "io/npy.hpp"
#include "toolkit/tensors.hpp"
#include "verify/compare/figures.hpp"

namespace graft::toolkit {
namespace {

/// Returns the tensor of an array, whose type is always a TensorType.
Tensor to_tensor(io::NpyArray array) {
  return {.dtype = static_cast<TensorType>(array.type), .shape = std::move(array.shape), .data = std::move(array.data)};
}

io::NpzArrays to_arrays(const TensorViews& tensors, const std::filesystem::path& file) {
  io::NpzArrays arrays;
  for (const auto& [name, tensor] : to_internal(tensors, file.string() + ": array")) {
    io::NpyArray array{.type = tensor.type, .shape = tensor.dims, .data = std::vector<std::byte>(tensor.bytes.size())};
    if (!array.data.empty()) std::memcpy(array.data.data(), tensor.bytes.data(), array.data.size());
    arrays.emplace(name, std::move(array));
  }
  return arrays;
}

bool is_archive(const std::filesystem::path& file) { return file.extension() == ".npz"; }

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

Tensors read_npz(const std::filesystem::path& file) {
  Tensors tensors;
  for (auto& [name, array] : io::read_npz(file)) tensors.emplace(name, to_tensor(std::move(array)));
  return tensors;
}

void write_npz(const std::filesystem::path& file, const Tensors& tensors) {
  io::write_npz(file, to_arrays(views_of(tensors), file));
}

Tensors read_tensors(const std::vector<std::string>& sources, std::string_view setting) {
  Tensors tensors;
  const auto add = [&](const std::string& source, const std::string& name, io::NpyArray array) {
    if (!tensors.emplace(name, to_tensor(std::move(array))).second) {
      throw Error(fmt::format("{} {}: {} is given twice\nGive each input once", setting, source, name));
    }
  };
  for (const std::string& source : sources) {
    const std::string what = fmt::format("{} {}", setting, source);
    const auto [name, file, array] = parts_of(source);
    if (source.find('=') == std::string::npos) {
      if (!is_archive(source)) {
        throw Error(fmt::format("{}: the name is missing\nWrite NAME=FILE.npy, NAME=FILE.npz:ARRAY or FILE.npz", what));
      }
      for (auto& [key, values] : io::read_npz(source)) add(source, key, std::move(values));
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
      add(source, name, choose(io::NpzFile(file), name, array, what));
    } else {
      add(source, name, io::read_npy(file));
    }
  }
  return tensors;
}

std::vector<std::filesystem::path> tensor_files(const std::vector<std::string>& sources) {
  std::vector<std::filesystem::path> files;
  for (const std::string& source : sources) files.emplace_back(parts_of(source).file);
  return files;
}

void write_tensors(const std::filesystem::path& file, const TensorViews& tensors) {
  const io::NpzArrays arrays = to_arrays(tensors, file);
  if (is_archive(file)) {
    io::write_npz(file, arrays);
    return;
  }
  if (arrays.size() != 1) {
    std::vector<std::string> names;
    for (const auto& [name, array] : arrays) names.push_back(name);
    throw Error(fmt::format("{}: a .npy file contains one array, and there are {} tensors: {}\nEnd the name in .npz",
                            file.string(), names.size(), fmt::join(names, ", ")));
  }
  io::write_npy(file, arrays.begin()->second);
}

std::vector<std::string> nan_warnings(const Tensors& tensors, std::string_view setting) {
  std::vector<std::string> warnings;
  for (const auto& [name, tensor] : to_internal(views_of(tensors), std::string(setting))) {
    const verify::TensorRange range = verify::range_of(tensor);
    if (range.nan == 0) continue;
    warnings.push_back(
        fmt::format("{}: {} of {} elements of input '{}' are NaN, and so are the values computed from them", setting,
                    range.nan, range.count, name));
  }
  return warnings;
}

}  // namespace graft::toolkit
