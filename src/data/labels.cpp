// Reads classes from the names of folders, or from a text file.
#include "data/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "data/images.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"

namespace graft::data {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> class_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_class = problem == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_class ? std::optional(number) : std::nullopt;
}

/// Returns the folder of images among the sources.
fs::path folder_of(const std::vector<std::string>& sources, const Columns& columns) {
  const bool has_images =
      std::ranges::any_of(columns.list, [](const Column& column) { return column.is_folder && column.is_images; });
  for (const std::string& text : sources) {
    const fs::path folder = parse_source(text).file;
    if (has_images && is_folder(folder)) return folder;
  }
  throw Error(
      fmt::format("{0}: classes belong to the images of a folder, and the data are other files\nPass a folder of "
                  "images, or remove {0}",
                  setting_name(Setting::labels)));
}

/// Returns the name of the folder that contains an image, relative to the folder of the data; empty for that folder.
std::string class_folder(const fs::path& image, const fs::path& folder) {
  return image.lexically_relative(folder).parent_path().filename().string();
}

/// Returns the class of each folder name. All images of the folder count, not only those that are read.
std::map<std::string, std::int64_t> classes_by_folder(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (entry->path().filename().string().starts_with('.') || !is_image(entry->path())) continue;
    names.insert(class_folder(entry->path(), folder));
  }
  const bool are_numbers =
      std::ranges::all_of(names, [](const std::string& name) { return class_of(name).has_value(); });
  std::map<std::string, std::int64_t> classes;
  for (const std::string& name : names) {
    classes.emplace(name, are_numbers ? *class_of(name) : static_cast<std::int64_t>(classes.size()));
  }
  return classes;
}

std::vector<std::int64_t> labels_by_folder(const fs::path& folder, const Column& images) {
  const std::map<std::string, std::int64_t> classes = classes_by_folder(folder);
  std::vector<std::int64_t> labels;
  for (const Array& image : images.arrays) {
    const std::string name = class_folder(image.place, folder);
    if (name.empty()) {
      throw Error(
          fmt::format("{} {}: {} is in no folder of a class\nPut the images of each class into a folder, or pass a "
                      "file with a line "
                      "NAME,CLASS for each image with {}",
                      setting_name(Setting::labels), labels_of_folders, image.place, setting_name(Setting::labels)));
    }
    labels.push_back(classes.at(name));
  }
  return labels;
}

/// Reads the classes of a file by the names of the images.
std::map<std::string, std::int64_t> read_classes(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{} {}: the file cannot be read", setting_name(Setting::labels), file.string()));
  std::map<std::string, std::int64_t> classes;
  std::string line;
  for (std::size_t number = 1; std::getline(stream, line); ++number) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == ',' || c == ';'; };
    while (!line.empty() && is_blank(line.back())) line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const std::size_t last = line.find_last_of(" \t,;");
    const std::string_view text = std::string_view(line).substr(last == std::string::npos ? 0 : last + 1);
    const std::optional<std::int64_t> label = last == std::string::npos ? std::nullopt : class_of(text);
    if (!label) {
      if (number == 1) continue;  // the titles of the columns
      throw Error(fmt::format("{}:{}: found '{}'; a line must be NAME,CLASS, where CLASS is an integer of at least 0",
                              file.string(), number, line));
    }
    std::string name = line.substr(0, last);
    while (!name.empty() && is_blank(name.back())) name.pop_back();
    classes.insert_or_assign(std::move(name), *label);
  }
  return classes;
}

std::vector<std::int64_t> labels_by_file(const fs::path& file, const fs::path& folder, const Column& images) {
  const std::map<std::string, std::int64_t> classes = read_classes(file);
  std::vector<std::int64_t> labels;
  for (const Array& image : images.arrays) {
    const fs::path path(image.place);
    auto found = classes.find(path.lexically_relative(folder).generic_string());
    if (found == classes.end()) found = classes.find(path.filename().string());
    if (found == classes.end()) {
      throw Error(
          fmt::format("{}: no line has the class of {}\nAdd a line NAME,CLASS with the name of the image or its "
                      "path in {}",
                      file.string(), image.place, folder.string()));
    }
    labels.push_back(found->second);
  }
  return labels;
}

}  // namespace

std::vector<std::int64_t> read_labels(const std::string& labels, const std::vector<std::string>& sources,
                                      const Columns& columns) {
  const fs::path folder = folder_of(sources, columns);
  const auto images =
      std::ranges::find_if(columns.list, [](const Column& column) { return column.is_folder && column.is_images; });
  return labels == labels_of_folders ? labels_by_folder(folder, *images) : labels_by_file(labels, folder, *images);
}

}  // namespace graft::data
