// Reads calibration samples from files.
#include "quant/calibrate/calibration_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "io/npy.hpp"
#include "onnx/bytes_part.hpp"
#include "quant/calibrate/images.hpp"
#include "verify/compare/ends.hpp"

namespace graft::quant {
namespace {

std::vector<const onnx::Value*> wanted_inputs(const onnx::Model& model) {
  std::vector<const onnx::Value*> wanted;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (!input->initializer) wanted.push_back(input);
  }
  return wanted;
}

std::string names_of(const std::vector<const onnx::Value*>& values) {
  std::string names;
  for (const onnx::Value* value : values) names += (names.empty() ? "" : ", ") + value->name;
  return names;
}

bool is_numpy(const std::filesystem::path& path) { return path.extension() == ".npy" || path.extension() == ".npz"; }

onnx::TensorData tensor_of(const io::NpyArray& array, std::vector<std::int64_t> dims, std::size_t begin,
                           std::size_t size) {
  onnx::TensorData tensor;
  tensor.type = array.type;
  tensor.dims = std::move(dims);
  tensor.bytes = onnx::Bytes(std::string(reinterpret_cast<const char*>(array.data.data()) + begin, size));
  return tensor;
}

/// Returns whether an array has the type and shape of a model's only input. Its name does not matter.
bool may_be(const io::NpyArray& array, const onnx::Value& input) {
  return array.type == input.type && (!input.rank() || std::cmp_equal(array.shape.size(), *input.rank()));
}

[[noreturn]] void fail_without_array(const std::filesystem::path& path, const onnx::Value& input,
                                     const io::NpzArrays& headers, const std::vector<const onnx::Value*>& inputs) {
  std::string listed;
  for (const auto& [name, array] : headers) {
    listed += fmt::format("{}{} ({} {})", listed.empty() ? "" : ", ", name, to_string(array.type),
                          fmt::join(array.shape, "x"));
  }
  throw Error(fmt::format("{}: the file has no array for the input '{}'; it contains {}, and the model's inputs are {}",
                          path.string(), input.name, listed, names_of(inputs)));
}

/// Returns the array of an archive that has the input's name. If no array has it and the model has one input, returns
/// the only array that fits. Of other arrays only the headers are read.
std::string choose_array(const std::filesystem::path& path, const io::NpzFile& archive, const onnx::Value& input,
                         const std::vector<const onnx::Value*>& inputs) {
  if (archive.contains(input.name)) return input.name;
  io::NpzArrays headers;
  for (const std::string& name : archive.names()) headers.emplace(name, archive.read_header(name));
  const auto fits = [&](const auto& entry) { return may_be(entry.second, input); };
  if (inputs.size() != 1 || std::count_if(headers.begin(), headers.end(), fits) != 1) {
    fail_without_array(path, input, headers, inputs);
  }
  return std::find_if(headers.begin(), headers.end(), fits)->first;
}

/// Reads the arrays of a file, under the names of the model's inputs.
io::NpzArrays read_arrays(const std::filesystem::path& path, const std::vector<const onnx::Value*>& inputs) {
  io::NpzArrays arrays;
  if (path.extension() == ".npz") {
    const io::NpzFile archive(path);
    for (const onnx::Value* input : inputs) {
      arrays.emplace(input->name, archive.read(choose_array(path, archive, *input, inputs)));
    }
    return arrays;
  }
  io::NpyArray array = io::read_npy(path);
  if (inputs.size() == 1 && may_be(array, *inputs.front())) {
    arrays.emplace(inputs.front()->name, std::move(array));
  } else if (!inputs.empty()) {
    arrays.emplace("array", std::move(array));
    fail_without_array(path, *inputs.front(), arrays, inputs);
  }
  return arrays;
}

/// Throws Error naming the file if a tensor does not fit its input. The engine's message would name the input, but not
/// which of a thousand files contains the tensor.
void check_fits(const onnx::Value& input, const onnx::TensorData& tensor, const std::filesystem::path& file) {
  const std::string mismatch = input.type ? runtime::mismatch_of(tensor, *input.type, input.shape) : std::string();
  if (!mismatch.empty()) throw Error(fmt::format("{}: input '{}': {}", file.string(), input.name, mismatch));
}

std::string identity_of(const std::filesystem::path& path) {
  return fmt::format("{} {}\n", path.filename().string(), std::filesystem::file_size(path));
}

bool has_finite_number(const onnx::TensorData& tensor) {
  if (tensor.type != onnx::ElementType::f32) {
    const std::optional<std::vector<double>> numbers = tensor.numbers();
    return !numbers || std::any_of(numbers->begin(), numbers->end(), [](double n) { return std::isfinite(n); });
  }
  // The first element is usually finite, and there may be a gigabyte of elements.
  const std::string_view raw = tensor.bytes.view();
  for (std::size_t at = 0; at + sizeof(float) <= raw.size(); at += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, raw.data() + at, sizeof(float));
    if (std::isfinite(number)) return true;
  }
  return false;
}

CalibrationData from_tensors(const std::shared_ptr<const runtime::TensorMap>& tensors,
                             const std::vector<const onnx::Value*>& inputs, const std::string& source,
                             std::string identity) {
  std::optional<std::int64_t> runs;
  std::map<std::string, std::int64_t> batches;
  for (const onnx::Value* input : inputs) {
    const onnx::TensorData& tensor = tensors->find(input->name)->second;
    check_has_numbers(input->name, tensor, source);
    const std::int64_t samples = tensor.dims.empty() ? 0 : tensor.dims.front();
    const std::int64_t batch = batches[input->name] =
        std::max<std::int64_t>(1, verify::fixed_batch(*input).value_or(1));
    if (samples < batch) {
      throw Error(fmt::format("{}: the array for the input '{}' has {} samples; one run needs {}{}", source,
                              input->name, samples, batch, batch == 1 ? "" : ", the batch size of the model"));
    }
    if (runs && *runs != samples / batch) {
      throw Error(
          fmt::format("{}: the array for the input '{}' has samples for {} runs, and the arrays of other inputs for "
                      "{}; all arrays must have samples for the same number of runs",
                      source, input->name, samples / batch, *runs));
    }
    runs = samples / batch;
  }
  CalibrationData data{.count = runs.value_or(0), .sample = {}, .identity = std::move(identity)};
  data.sample = [tensors, batches](std::int64_t index) {
    runtime::TensorMap sample;
    for (const auto& [name, batch] : batches) {
      const onnx::TensorData& all = tensors->find(name)->second;
      onnx::TensorData part = all;
      part.dims.front() = batch;
      const std::size_t bytes =
          all.bytes.size() / static_cast<std::size_t>(all.dims.front()) * static_cast<std::size_t>(batch);
      part.bytes = onnx::part_of(all.bytes, static_cast<std::size_t>(index) * bytes, bytes);
      sample.emplace(name, std::move(part));
    }
    return sample;
  };
  return data;
}

CalibrationData from_file(const std::filesystem::path& path, const std::vector<const onnx::Value*>& inputs) {
  auto tensors = std::make_shared<runtime::TensorMap>();
  for (auto& [name, array] : read_arrays(path, inputs)) {
    tensors->emplace(name, tensor_of(array, array.shape, 0, array.data.size()));
  }
  return from_tensors(tensors, inputs, path.string(), identity_of(path));
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> images;
  std::vector<std::filesystem::path> arrays;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    if (is_image(entry.path())) images.push_back(entry.path());
    if (is_numpy(entry.path())) arrays.push_back(entry.path());
  }
  if (images.empty() == arrays.empty()) {
    throw Error(fmt::format(
        "{}: the folder contains {}; it must contain either images (.jpg, .jpeg, .png) or arrays (.npz, .npy)",
        folder.string(), images.empty() ? "neither images nor arrays" : "both images and arrays"));
  }
  std::vector<std::filesystem::path>& files = images.empty() ? arrays : images;
  std::sort(files.begin(), files.end());
  return files;
}

/// Keeps the first images in memory, up to a limit in bytes.
class KeptImages {
 public:
  template <class Load>
  onnx::TensorData get(std::int64_t index, const Load& load) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = images_.find(index); found != images_.end()) return found->second;
    }
    onnx::TensorData image = load();
    constexpr std::size_t most_bytes = std::size_t{32} << 20U;
    const std::lock_guard lock(mutex_);
    if (bytes_ + image.bytes.size() <= most_bytes && images_.emplace(index, image).second) bytes_ += image.bytes.size();
    return image;
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, onnx::TensorData> images_;
  std::size_t bytes_ = 0;
};

const onnx::Value& input_for_images(const std::vector<const onnx::Value*>& inputs, const ImageRecipe& recipe) {
  if (inputs.size() == 1 && recipe.input.empty()) return *inputs.front();
  if (inputs.size() > 1) {
    throw Error(
        fmt::format("the model has the inputs {}, and a folder of images contains data for one input only\nCreate .npz "
                    "files that contain an array for each input",
                    names_of(inputs)));
  }
  const auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const onnx::Value* input) { return input->name == recipe.input; });
  if (found == inputs.end()) {
    throw Error(
        fmt::format("`input` of the recipe is '{}', which is not an input of the model; the model's inputs are {}",
                    recipe.input, names_of(inputs)));
  }
  return **found;
}

CalibrationData from_folder(const std::filesystem::path& folder, const std::vector<const onnx::Value*>& inputs,
                            const std::filesystem::path& recipe_file) {
  std::optional<ImageRecipe> recipe;
  if (!recipe_file.empty()) recipe = read_image_recipe(recipe_file);
  const std::vector<std::filesystem::path> files = files_in(folder);
  CalibrationData data{.count = static_cast<std::int64_t>(files.size()), .sample = {}, .identity = {}};
  for (const auto& file : files) data.identity += identity_of(file);
  if (is_numpy(files.front())) {
    data.sample = [files, inputs](std::int64_t index) {
      const std::filesystem::path& file = files[static_cast<std::size_t>(index)];
      const io::NpzArrays arrays = read_arrays(file, inputs);
      runtime::TensorMap sample;
      for (const onnx::Value* input : inputs) {
        const io::NpyArray& array = arrays.find(input->name)->second;
        onnx::TensorData tensor = tensor_of(array, array.shape, 0, array.data.size());
        check_fits(*input, tensor, file);
        check_has_numbers(input->name, tensor, file.string());
        sample.emplace(input->name, std::move(tensor));
      }
      return sample;
    };
    return data;
  }
  if (!recipe) {
    throw Error(
        fmt::format("{}: no recipe describes how the images are prepared; write a YAML file with resize, crop, "
                    "channels, mean and scale, and pass the file with {}",
                    folder.string(), setting_name(Setting::recipe)));
  }
  const onnx::Value* input = &input_for_images(inputs, *recipe);
  data.identity += recipe->text;
  // A search requests the same samples repeatedly.
  data.sample = [files, input, recipe = *recipe, kept = std::make_shared<KeptImages>()](std::int64_t index) {
    const std::filesystem::path& file = files[static_cast<std::size_t>(index)];
    runtime::TensorMap sample;
    sample.emplace(input->name, kept->get(index, [&] {
      return load_image(file, recipe, [&](const onnx::TensorData& empty) { check_fits(*input, empty, file); });
    }));
    return sample;
  };
  return data;
}

}  // namespace

void check_has_numbers(const std::string& input, const onnx::TensorData& tensor, const std::string& source) {
  if (!is_floating_point(tensor.type) || tensor.bytes.size() == 0 || has_finite_number(tensor)) return;
  throw Error(
      fmt::format("{}: the array for the input '{}' contains no finite value, only NaN and infinities\nUse data as the "
                  "network receives them in practice",
                  source, input));
}

CalibrationData open_calibration_data(const std::filesystem::path& path, const onnx::Model& model,
                                      const std::filesystem::path& recipe, std::int64_t limit) {
  const std::vector<const onnx::Value*> inputs = wanted_inputs(model);
  std::error_code problem;
  const bool is_folder = std::filesystem::is_directory(path, problem);
  if (!is_folder && !is_numpy(path)) {
    throw Error(fmt::format("{}: {}; pass a .npz or .npy file, or a folder of images or of such files", path.string(),
                            std::filesystem::exists(path, problem) ? "this is not data that Graft can read"
                                                                   : "there is no such file or folder"));
  }
  CalibrationData data = is_folder ? from_folder(path, inputs, recipe) : from_file(path, inputs);
  if (limit > 0) data.count = std::min(data.count, limit);
  return data;
}

std::vector<std::string> tensor_sources(const std::filesystem::path& path, const onnx::Model& model) {
  const std::vector<const onnx::Value*> inputs = wanted_inputs(model);
  std::vector<std::string> sources;
  if (path.extension() != ".npz") {
    for (const onnx::Value* input : inputs) sources.push_back(fmt::format("{}={}", input->name, path.string()));
    return sources;
  }
  const io::NpzFile archive(path);
  bool has_names_of_inputs = archive.names().size() == inputs.size();
  for (const onnx::Value* input : inputs) {
    const std::string array = choose_array(path, archive, *input, inputs);
    has_names_of_inputs = has_names_of_inputs && array == input->name;
    sources.push_back(fmt::format("{}={}:{}", input->name, path.string(), array));
  }
  return has_names_of_inputs ? std::vector{path.string()} : sources;
}

CalibrationData calibration_data_of(const runtime::TensorMap& tensors, const onnx::Model& model, std::int64_t limit,
                                    std::string_view option) {
  const std::vector<const onnx::Value*> inputs = wanted_inputs(model);
  for (const auto& [name, tensor] : tensors) {
    const auto is_this = [&wanted = name](const onnx::Value* input) { return input->name == wanted; };
    if (std::none_of(inputs.begin(), inputs.end(), is_this)) {
      throw Error(fmt::format("{}: the model has no input '{}'; its inputs are {}", option, name, names_of(inputs)));
    }
  }
  std::string identity;
  for (const onnx::Value* input : inputs) {
    const auto found = tensors.find(input->name);
    if (found == tensors.end()) {
      throw Error(fmt::format("{}: no tensor is passed for the input '{}'; the model's inputs are {}", option,
                              input->name, names_of(inputs)));
    }
    identity += fmt::format("{} {} {}\n", input->name, fmt::join(found->second.dims, "x"),
                            std::hash<std::string_view>()(found->second.bytes.view()));
  }
  CalibrationData data = from_tensors(std::make_shared<const runtime::TensorMap>(tensors), inputs, std::string(option),
                                      std::move(identity));
  if (limit > 0) data.count = std::min(data.count, limit);
  return data;
}

}  // namespace graft::quant
