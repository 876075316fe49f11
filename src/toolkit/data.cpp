// Reads the data of options for the inputs of a network.
#include "toolkit/data.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "data/labels.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/files.hpp"
#include "toolkit/access.hpp"
#include "toolkit/tensors.hpp"
#include "verify/compare/ends.hpp"

namespace graft::toolkit {
namespace {

data::SourceOptions source_options(const GivenData& given) {
  return {.setting = given.setting, .recipe = given.files.recipe, .files = given.files.samples};
}

}  // namespace

void check_kinds_of_data(const DataFiles& files, bool has_tensors, Setting setting) {
  if (!files.empty() && has_tensors) {
    throw Error(fmt::format("{}: the input data are also set by data_files\nSet only the tensors or only the files",
                            setting_name(setting)));
  }
  if (files.empty() && !files.labels.empty()) {
    throw Error(fmt::format("{0}: classes belong to the images of a folder; {1}\nRemove {0}, or pass images with {2}",
                            setting_name(Setting::labels),
                            has_tensors ? "the input data are tensors" : "there are no input data",
                            setting_name(setting)));
  }
  if (files.empty() && !files.recipe.empty()) {
    throw Error(
        fmt::format("{0}: a recipe applies only to a folder of images; {1}\nRemove {0}, or pass images with {2}",
                    setting_name(Setting::recipe),
                    has_tensors ? "the input data are tensors" : "there are no input data", setting_name(setting)));
  }
}

data::Columns open_columns(const GivenData& given, const data::Inputs& inputs) {
  const data::SourceOptions options = source_options(given);
  return given.files.empty() ? data::open_tensors(given.tensors, inputs, options)
                             : data::open_sources(given.files.sources, inputs, options);
}

std::vector<std::int64_t> read_labels(const GivenData& given, const data::Inputs& inputs) {
  if (given.files.labels.empty()) return {};
  return data::read_labels(given.files.labels, given.files.sources, open_columns(given, inputs));
}

data::Runs read_runs(const GivenData& given, const data::Inputs& inputs) {
  check_kinds_of_data(given.files, !given.tensors.empty(), given.setting);
  if (given.empty()) return {};
  return data::read_runs(open_columns(given, inputs), source_options(given));
}

data::Samples open_samples(const GivenData& given, const data::Inputs& inputs, std::int64_t limit) {
  if (given.empty()) return {};
  GivenData limited = given;
  if (limit != 0) limited.files.samples = limit;
  return data::divide_samples(open_columns(limited, inputs), limit);
}

DataRuns read_data(const DataFiles& files, const data::Inputs& inputs) {
  const std::string setting(setting_name(Setting::calibration_data));
  const GivenData given{.files = files, .tensors = {}, .setting = Setting::calibration_data};
  data::Runs read = read_runs(given, inputs);
  DataRuns result{.runs = {}, .notes = std::move(read.notes)};
  if (read.runs.empty()) read.runs.emplace_back();
  std::map<std::string, std::int64_t, std::less<>> batches;
  for (const data::Input& input : inputs.list) {
    if (const auto& shape = input.port.shape; shape && !shape->empty() && shape->front().is_constant()) {
      batches.emplace(input.name(), shape->front().value());
    }
  }
  for (const runtime::TensorMap& run : read.runs) {
    for (const runtime::TensorMap& part : verify::split_into_runs(run, batches, setting)) {
      result.runs.push_back(to_public(part, "input"));
    }
  }
  return result;
}

DataRuns read_data(const DataFiles& files, const Model& model) {
  return read_data(files, data::inputs_of(model_of(model)));
}

std::vector<std::filesystem::path> data_paths(const DataFiles& files) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& source : files.sources) paths.push_back(data::parse_source(source).file);
  if (!files.recipe.empty()) paths.push_back(files.recipe);
  if (!files.labels.empty() && files.labels != data::labels_of_folders) paths.emplace_back(files.labels);
  return paths;
}

std::vector<std::string> absolute_sources(const std::vector<std::string>& sources) {
  std::vector<std::string> found;
  for (const std::string& text : sources) {
    const data::Source source = data::parse_source(text);
    std::string absolute = std::filesystem::absolute(source.file).lexically_normal().string();
    if (!source.name.empty()) absolute.insert(0, source.name + "=");
    if (!source.array.empty()) absolute += ":" + source.array;
    found.push_back(std::move(absolute));
  }
  return found;
}

Model load(const std::filesystem::path& file, const ImportOptions& options, const DataFiles& files) {
  if (files.empty() || !options.shapes.empty() || format_of(file) == Format::onnx) return load(file, options);
  ImportOptions shaped = options;
  const auto named = data::named_shapes(files.sources);
  shaped.shapes = {named.begin(), named.end()};
  std::optional<Model> model;
  try {
    model = load(file, options);
  } catch (const Error& error) {
    // The reader may need the shapes of the data. Its message is clearer than that of this attempt.
    if (error.kind() != Error::Kind::bad_input) throw;
    return load(file, shaped);
  }
  const GivenData given{.files = files, .tensors = {}, .setting = Setting::calibration_data};
  const auto shapes = data::first_shapes(open_columns(given, data::inputs_of(model_of(*model))));
  shaped.shapes = {shapes.begin(), shapes.end()};
  return load(file, shaped);
}

}  // namespace graft::toolkit
