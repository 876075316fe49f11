// Lists the files of the sources, and finds the array for each input by its name or, if only one array fits, by its
// type and shape.
#include "data/sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "data/images.hpp"
#include "graft/error.hpp"
#include "io/npy.hpp"

namespace graft::data {
namespace {

namespace fs = std::filesystem;

bool is_archive(const fs::path& path) { return path.extension() == ".npz"; }
bool is_numpy(const fs::path& path) { return path.extension() == ".npy" || is_archive(path); }

bool is_there(const fs::path& path) {
  std::error_code problem;
  return fs::exists(path, problem);
}

onnx::TensorData tensor_of(io::NpyArray array) {
  const auto kept = std::make_shared<const io::NpyArray>(std::move(array));
  onnx::TensorData tensor;
  tensor.type = kept->type;
  tensor.dims = kept->shape;
  tensor.bytes = onnx::Bytes(kept, {reinterpret_cast<const char*>(kept->data.data()), kept->data.size()});
  return tensor;
}

std::string identity_of(const fs::path& path) {
  std::error_code problem;
  return fmt::format("{} {}\n", path.filename().string(), fs::file_size(path, problem));
}

/// Returns the files of a folder and of its subfolders, in the order of their paths: all images, or all arrays. Throws
/// Error if the folder contains neither or both; `setting` is the option that the message names.
std::vector<fs::path> files_in(const fs::path& folder, Setting setting) {
  std::vector<fs::path> images;
  std::vector<fs::path> arrays;
  std::error_code problem;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with('.') || !entry->is_regular_file(ignored)) continue;
    if (is_image(entry->path())) images.push_back(entry->path());
    if (is_numpy(entry->path())) arrays.push_back(entry->path());
  }
  if (problem) throw Error(fmt::format("{}: the folder cannot be read: {}", folder.string(), problem.message()));
  if (images.empty() == arrays.empty()) {
    throw Error(fmt::format(
        "{}: the folder contains {}; it must contain either images (.jpg, .jpeg, .png) or arrays (.npz, .npy)\nPass "
        "the folder of the samples with {}",
        folder.string(), images.empty() ? "neither images nor arrays" : "both images and arrays",
        setting_name(setting)));
  }
  std::vector<fs::path>& files = images.empty() ? arrays : images;
  std::sort(files.begin(), files.end());
  return std::move(files);
}

/// Returns at most `most` of the files, evenly spread; all of them if `most` is 0.
std::vector<fs::path> spread(std::vector<fs::path> files, std::int64_t most) {
  const std::int64_t count = std::ssize(files);
  if (most == 0 || count <= most) return files;
  std::vector<fs::path> chosen;
  for (std::int64_t i = 0; i < most; ++i) chosen.push_back(files[static_cast<std::size_t>(i * count / most)]);
  return chosen;
}

Array array_of_npy(const fs::path& path) {
  const io::NpyArray header = io::read_npy_header(path);
  return {.place = path.string(), .type = header.type, .dims = header.shape, .read = [path] {
            return tensor_of(io::read_npy(path));
          }};
}

Array array_of_npz(const fs::path& path, const io::NpzFile& archive, const std::string& name) {
  const io::NpyArray header = archive.read_header(name);
  return {.place = fmt::format("{}: array '{}'", path.string(), name),
          .type = header.type,
          .dims = header.shape,
          .read = [path, name] { return tensor_of(io::NpzFile(path).read(name)); }};
}

/// Keeps the first images in memory, up to a limit in bytes, because a search reads the same samples repeatedly.
class KeptImages {
 public:
  template <class Load>
  onnx::TensorData get(const std::string& file, const Load& load) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = images_.find(file); found != images_.end()) return found->second;
    }
    onnx::TensorData image = load();
    constexpr std::size_t most_bytes = std::size_t{32} << 20U;
    const std::lock_guard lock(mutex_);
    if (bytes_ + image.bytes.size() <= most_bytes && images_.emplace(file, image).second) bytes_ += image.bytes.size();
    return image;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, onnx::TensorData> images_;
  std::size_t bytes_ = 0;
};

class Opener {
 public:
  Opener(const Inputs& inputs, const SourceOptions& options) : inputs_(inputs), options_(options) {}

  Columns open(const std::vector<std::string>& texts) {
    std::vector<Source> named;
    std::vector<Source> unnamed;
    for (const std::string& text : texts) {
      Source source = parse(text);
      (source.name.empty() ? unnamed : named).push_back(std::move(source));
    }
    for (const Source& source : named) open_named(source);
    is_alone_ = unnamed.size() == 1;
    for (const Source& source : unnamed) open_unnamed(source);
    check_recipe();
    return finish();
  }

  Columns open(const runtime::TensorMap& tensors) {
    for (const auto& [name, tensor] : tensors) {
      const std::string place = std::string(setting_name(options_.setting));
      const Input& input = name.empty() ? only_input(place) : find(place, name);
      Column& column = add_column(input, fmt::format("{} '{}'", place, name));
      column.arrays.push_back(
          {.place = place, .type = tensor.type, .dims = tensor.dims, .read = [tensor = tensor] { return tensor; }});
      result_.identity += fmt::format("{} {} {}\n", input.name(), fmt::join(tensor.dims, "x"),
                                      std::hash<std::string_view>()(tensor.bytes.view()));
    }
    return finish();
  }

 private:
  [[nodiscard]] std::string place_of(const Source& source) const {
    return fmt::format("{} {}", setting_name(options_.setting), source.text);
  }

  /// Parses a source of data. Where the text contains several equals signs, the name ends at the one that makes it the
  /// name of an input.
  [[nodiscard]] Source parse(const std::string& text) const {
    Source source = parse_source(text);
    if (source.file == text) return source;
    for (const Input& input : inputs_.list) {
      const std::string prefix = input.name() + "=";
      if (!text.starts_with(prefix) || source.name == input.name()) continue;
      source = parse_source(text.substr(prefix.size()));
      source.name = input.name();
      source.text = text;
    }
    return source;
  }

  [[nodiscard]] const Input& find(const std::string& place, const std::string& name) const {
    const Input* input = inputs_.find(name);
    if (input == nullptr) fail_unknown_input(place, name, inputs_);
    return *input;
  }

  [[nodiscard]] std::vector<const Input*> open_inputs() const {
    std::vector<const Input*> open;
    for (const Input& input : inputs_.list) {
      if (input.is_required && !columns_.contains(input.name())) open.push_back(&input);
    }
    return open;
  }

  /// Returns the only input that has no data yet. If there are several, returns the one named `stem`, the name of the
  /// file without its extension, or throws Error if none has this name. `place` begins the message.
  [[nodiscard]] const Input& only_input(const std::string& place, const std::string& stem = {}) const {
    const std::vector<const Input*> open = open_inputs();
    if (open.size() == 1) return *open.front();
    for (const Input* input : open) {
      if (input->has_name(stem)) return *input;
    }
    if (open.empty()) {
      throw Error(fmt::format("{}: no input is left for this array; the inputs are {}\nSpecify each input once", place,
                              inputs_.names()));
    }
    throw Error(
        fmt::format("{}: the array may be for any of several inputs: {}\nWrite the name of the input before the file, "
                    "for example {}=FILE",
                    place, inputs_.names(), open.front()->name()));
  }

  Column& add_column(const Input& input, const std::string& place) {
    const auto [found, is_new] = columns_.try_emplace(input.name(), Column{.input = input, .arrays = {}});
    if (!is_new) {
      throw Error(fmt::format("{}: input '{}' is specified twice\nSpecify each input once", place, input.name()));
    }
    return found->second;
  }

  /// Returns the files of a source. Throws Error if there is no such file or folder.
  std::vector<fs::path> list_files(const Source& source) {
    if (!is_there(source.file)) {
      const bool has_name = !source.name.empty();
      throw Error(
          fmt::format("{}: {}: there is no such file or folder\nWrite {}FILE.npy, {}FILE.npz or a folder of "
                      "such files",
                      setting_name(options_.setting), source.file.string(), has_name ? source.name + "=" : "",
                      has_name ? source.name + "=" : ""));
    }
    if (!is_folder(source.file)) return {source.file};
    std::vector<fs::path> all = files_in(source.file, options_.setting);
    const std::size_t count = all.size();
    std::vector<fs::path> files = spread(std::move(all), options_.files);
    if (files.size() < count) {
      result_.notes.push_back(fmt::format("{}: {} of the {} files are read, evenly spread over the folder",
                                          source.file.string(), files.size(), count));
    }
    return files;
  }

  void open_named(const Source& source) {
    const std::string place = place_of(source);
    const Input& input = find(place, source.name);
    Column& column = add_column(input, place);
    column.is_folder = is_folder(source.file);
    for (const fs::path& file : list_files(source)) column.arrays.push_back(open_file(file, input, source, column));
  }

  /// Returns the array of a file for an input, and sets `column.is_images` for an image. Only headers are read.
  Array open_file(const fs::path& file, const Input& input, const Source& source, Column& column) {
    result_.identity += identity_of(file);
    if (is_image(file)) {
      column.is_images = true;
      return open_image(file, input);
    }
    if (!is_archive(file)) return array_of_npy(file);
    const io::NpzFile archive(file);
    return array_of_npz(file, archive, choose_array(file, archive, input, source));
  }

  Array open_image(const fs::path& file, const Input& input) {
    if (!recipe_) {
      if (options_.recipe.empty()) {
        throw Error(
            fmt::format("{}: no recipe describes how the images are prepared; write a YAML file with resize, crop, "
                        "channels, mean and scale, and pass the file with {}",
                        file.string(), setting_name(Setting::recipe)));
      }
      recipe_ = std::make_shared<const ImageRecipe>(read_image_recipe(options_.recipe));
    }
    const std::string place = file.string();
    const bool is_comparison = inputs_.is_comparison;
    return {.place = place,
            .fit = {.converted_from = input.port.type != onnx::ElementType::f32 ? std::optional(onnx::ElementType::f32)
                                                                                : std::nullopt},
            .read = [file, place, input, is_comparison, recipe = recipe_, kept = kept_] {
              return kept->get(place, [&] {
                return load_image(file, *recipe, [&](const onnx::TensorData& empty) {
                  (void)fit_or_fail(input, empty.type, empty.dims, is_comparison, place, true);
                });
              });
            }};
  }

  [[nodiscard]] bool may_be(const io::NpyArray& header, const Input& input) const {
    return fit(input, header.type, header.shape, inputs_.is_comparison).has_value();
  }

  /// Returns the names of an archive's arrays that fit the input and that no input has as its name.
  [[nodiscard]] std::vector<std::string> fitting_arrays(const io::NpzFile& archive, const Input& input) const {
    std::vector<std::string> fitting;
    for (const std::string& name : archive.names()) {
      if (inputs_.find(name) == nullptr && may_be(archive.read_header(name), input)) fitting.push_back(name);
    }
    return fitting;
  }

  [[noreturn]] void fail_without_array(const fs::path& file, const io::NpzFile& archive, const Input& input) const {
    std::vector<std::string> listed;
    for (const std::string& name : archive.names()) {
      const io::NpyArray header = archive.read_header(name);
      listed.push_back(fmt::format("{} ({} {})", name, to_string(header.type), fmt::join(header.shape, "x")));
    }
    throw Error(fmt::format(
        "{}: the file has no array for the input '{}'; it contains {}, and the model's inputs are {}{}\nThe input is "
        "{}. Select its array, for example {} {}={}:{}",
        file.string(), input.name(), fmt::join(listed, ", "), inputs_.names(),
        suggestion(input.name(), archive.names()), type_and_shape(input.port), setting_name(options_.setting),
        input.name(), file.string(), archive.names().empty() ? "ARRAY" : archive.names().front()));
  }

  /// Returns the array of an archive for an input: the one that the source selects or that has the input's name, or
  /// the only one that fits.
  std::string choose_array(const fs::path& file, const io::NpzFile& archive, const Input& input, const Source& source) {
    if (!source.array.empty()) {
      if (archive.contains(source.array)) return source.array;
      throw Error(
          fmt::format("{}: the file has no array '{}'{}; its arrays are {}\nSelect an array, as in {}=FILE.npz:"
                      "ARRAY",
                      place_of(source), source.array, suggestion(source.array, archive.names()),
                      fmt::join(archive.names(), ", "), input.name()));
    }
    if (archive.contains(input.name())) return input.name();
    if (input.candidate && archive.contains(input.candidate->name)) return input.candidate->name;
    const std::vector<std::string> names = archive.names();
    if (!source.name.empty() && names.size() == 1) return names.front();
    const std::vector<std::string> fitting = fitting_arrays(archive, input);
    if (fitting.size() != 1) fail_without_array(file, archive, input);
    note_once(fmt::format("input '{}' is read from the array '{}' of {}, the only one that fits", input.name(),
                          fitting.front(), file.string()),
              input.name() + " array");
    return fitting.front();
  }

  void open_unnamed(const Source& source) {
    const std::string place = place_of(source);
    const std::vector<fs::path> files = list_files(source);
    if (is_archive(files.front()) && source.array.empty()) return open_archives(source, files);
    if (is_folder(source.file) && open_named_files(files)) return;
    const Input& input = is_image(files.front()) ? input_of_images(place) : only_input(place, files.front().stem());
    Column& column = add_column(input, place);
    column.is_folder = is_folder(source.file);
    for (const fs::path& file : files) column.arrays.push_back(open_file(file, input, source, column));
  }

  /// Opens the .npy files of a folder as arrays of several inputs, if each file has the name of an input. Returns false
  /// and opens no file if a file has another name, or if fewer than two inputs lack data.
  bool open_named_files(const std::vector<fs::path>& files) {
    const std::vector<const Input*> open = open_inputs();
    const auto names_an_input = [&](const fs::path& file) {
      return file.extension() == ".npy" && std::any_of(open.begin(), open.end(), [&](const Input* input) {
               return input->has_name(file.stem().string());
             });
    };
    if (open.size() < 2 || !std::all_of(files.begin(), files.end(), names_an_input)) return false;
    for (const fs::path& file : files) {
      const Input& input = find(file.string(), file.stem().string());
      add_column(input, file.string()).arrays.push_back(array_of_npy(file));
      result_.identity += identity_of(file);
    }
    return true;
  }

  /// Returns the input for a folder of images: the one that the recipe names, or else the only input without data.
  /// Throws Error if there are several; `place` begins the message.
  [[nodiscard]] const Input& input_of_images(const std::string& place) {
    if (options_.recipe.empty()) return only_input(place);
    recipe_ = std::make_shared<const ImageRecipe>(read_image_recipe(options_.recipe));
    if (recipe_->input.empty()) return only_input(place);
    const Input* input = inputs_.find(recipe_->input);
    if (input == nullptr)
      fail_unknown_input(fmt::format("{}: `input`", options_.recipe.string()), recipe_->input, inputs_);
    return *input;
  }

  /// Adds the arrays of .npz files to the inputs that have no data yet. Each file has an array for each of these inputs
  /// or, if there are several sources of data, for some of them.
  void open_archives(const Source& source, const std::vector<fs::path>& files) {
    const std::vector<const Input*> open = open_inputs();
    std::vector<std::string> opened;
    for (const fs::path& file : files) {
      if (!is_archive(file)) {
        throw Error(
            fmt::format("{}: the folder also contains .npz files\nUse files of one kind in a folder", file.string()));
      }
      const io::NpzFile archive(file);
      result_.identity += identity_of(file);
      std::set<std::string, std::less<>> used;
      for (const Input* input : open) {
        const bool has_array =
            archive.contains(input->name()) || (input->candidate && archive.contains(input->candidate->name));
        if (!has_array && !is_alone_) continue;
        const std::string array = choose_array(file, archive, *input, source);
        if (!used.insert(array).second) fail_without_array(file, archive, *input);
        Column& column = columns_.try_emplace(input->name(), Column{.input = *input, .arrays = {}}).first->second;
        column.is_folder = is_folder(source.file);
        column.arrays.push_back(array_of_npz(file, archive, array));
        if (array == input->name()) opened.push_back(array);
      }
      const bool is_named = !used.empty() && opened.size() >= used.size();
      for (const std::string& name : archive.names()) {
        if (is_named && !used.contains(name) && inputs_.find(name) == nullptr) {
          note_once(fmt::format("{}: the array '{}' is not used, because no input has this name", file.string(), name),
                    "unused " + name);
        }
      }
    }
  }

  void check_recipe() const {
    if (options_.recipe.empty()) return;
    const auto has_images = [](const auto& entry) { return entry.second.is_images; };
    if (std::any_of(columns_.begin(), columns_.end(), has_images)) return;
    throw Error(
        fmt::format("{0}: a recipe applies only to images; the data are arrays\nRemove {0}, or pass a folder "
                    "of images with {1}",
                    setting_name(Setting::recipe), setting_name(options_.setting)));
  }

  void note_once(std::string note, const std::string& subject) {
    if (noted_.insert(subject).second) result_.notes.push_back(std::move(note));
  }

  /// Checks that every array fits its input, and returns the columns in the order of the inputs.
  Columns finish() {
    for (const Input* input : open_inputs()) {
      if (inputs_.is_comparison && columns_.empty()) continue;
      throw Error(
          fmt::format("{}: no tensor is passed for the input '{}' ({}); the model's inputs are {}\nPass data for "
                      "each input, for example {} {}=FILE.npy",
                      setting_name(options_.setting), input->name(), type_and_shape(input->port), inputs_.names(),
                      setting_name(options_.setting), input->name()));
    }
    for (const Input& input : inputs_.list) {
      const auto found = columns_.find(input.name());
      if (found == columns_.end()) continue;
      fit_column(found->second);
      result_.list.push_back(std::move(found->second));
    }
    if (recipe_) result_.identity += recipe_->text;
    if (recipe_ && !recipe_->has_scale) note_range_of_pixels();
    return std::move(result_);
  }

  /// Adds a note with the range of the values of images. A network that was trained with values from 0 to 1 runs with
  /// pixels from 0 to 255 too, and its results and its calibration are then wrong.
  void note_range_of_pixels() {
    constexpr double largest_pixel = 255;
    const auto [lowest, highest] = std::ranges::minmax(recipe_->mean);
    for (const Column& column : result_.list) {
      if (!column.is_images) continue;
      result_.notes.push_back(
          fmt::format("{}: values {:.6g} to {:.6g}; the recipe has no scale. If the network expects 0 to 1, add the "
                      "line `scale: 1/255` to {}",
                      column.input.name(), 0 - highest, largest_pixel - lowest, options_.recipe.string()));
    }
  }

  void fit_column(Column& column) {
    // The arrays of a folder that are converted in the same way have one note.
    std::map<std::pair<std::optional<onnx::ElementType>, bool>, std::vector<const Array*>> alike;
    for (Array& array : column.arrays) {
      if (!array.type) continue;
      array.fit = fit_or_fail(column.input, *array.type, array.dims, inputs_.is_comparison, array.place);
      alike[{array.fit.converted_from, array.fit.adds_axis}].push_back(&array);
    }
    for (const auto& [kind, arrays] : alike) {
      const Array& first = *arrays.front();
      const std::size_t others = arrays.size() - 1;
      const std::string place =
          others == 0 ? first.place
                      : fmt::format("{} and {} other file{}", first.place, others, others == 1 ? "" : "s");
      if (std::string note = describe(first.fit, column.input, first.dims, place); !note.empty()) {
        result_.notes.push_back(std::move(note));
      }
    }
  }

  const Inputs& inputs_;
  const SourceOptions& options_;
  std::map<std::string, Column, std::less<>> columns_;  ///< The keys are names of inputs.
  Columns result_;
  std::set<std::string, std::less<>> noted_;
  std::shared_ptr<const ImageRecipe> recipe_;
  std::shared_ptr<KeptImages> kept_ = std::make_shared<KeptImages>();
  bool is_alone_ = false;  ///< Whether a single source has no name, so that it has to contain all remaining inputs.
};

}  // namespace

bool is_folder(const fs::path& path) {
  std::error_code problem;
  return fs::is_directory(path, problem);
}

Source parse_source(const std::string& text) {
  Source source{.text = text, .name = {}, .file = text, .array = {}};
  if (is_there(text)) return source;
  std::string file = text;
  if (const std::size_t equals = text.find('='); equals != std::string::npos && equals != 0) {
    source.name = text.substr(0, equals);
    file = text.substr(equals + 1);
  }
  const std::size_t colon = file.rfind(':');
  if (colon != std::string::npos && is_archive(file.substr(0, colon)) && !is_there(file)) {
    source.array = file.substr(colon + 1);
    file.resize(colon);
  }
  source.file = file;
  return source;
}

std::map<std::string, std::vector<std::int64_t>, std::less<>> named_shapes(const std::vector<std::string>& sources) {
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;
  for (const std::string& text : sources) {
    const Source source = parse_source(text);
    try {
      if (is_folder(source.file)) continue;
      if (!is_archive(source.file)) {
        if (!source.name.empty() && !is_image(source.file)) {
          shapes.emplace(source.name, io::read_npy_header(source.file).shape);
        }
        continue;
      }
      const io::NpzFile archive(source.file);
      const std::vector<std::string> names = archive.names();
      if (source.name.empty()) {
        if (!source.array.empty()) continue;
        for (const std::string& name : names) shapes.emplace(name, archive.read_header(name).shape);
        continue;
      }
      std::string array = source.array.empty() ? source.name : source.array;
      if (source.array.empty() && names.size() == 1) array = names.front();
      shapes.emplace(source.name, archive.read_header(array).shape);
    } catch (const Error&) {  // open_sources reports the fault
      continue;
    }
  }
  return shapes;
}

Columns open_sources(const std::vector<std::string>& sources, const Inputs& inputs, const SourceOptions& options) {
  return Opener(inputs, options).open(sources);
}

Columns open_tensors(const runtime::TensorMap& tensors, const Inputs& inputs, const SourceOptions& options) {
  return Opener(inputs, options).open(tensors);
}

}  // namespace graft::data
