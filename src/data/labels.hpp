// The classes of images, for the accuracy of a classifier.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources.hpp"

namespace graft::data {

/// The value of Setting::labels for images in one folder per class.
inline constexpr std::string_view labels_of_folders = "folders";

/// Returns the class of each file of the column of images, in the order of its arrays. `labels` is labels_of_folders or
/// the path of a text file:
///
/// - folders: the class of an image is the name of its folder. If all names are integers, they are the classes;
///   otherwise the classes are the positions of the names in their sorted order, as in torchvision's ImageFolder.
/// - A file has a line NAME CLASS or NAME,CLASS for each image, where NAME is the name of the image or its path in the
///   folder, and CLASS an integer. Empty lines, lines that begin with #, and a first line with titles are skipped.
///
/// Throws Error if no source is a folder of images, naming an image without a class, and naming file and line of a
/// class that is not an integer of at least 0.
[[nodiscard]] std::vector<std::int64_t> read_labels(const std::string& labels, const std::vector<std::string>& sources,
                                                    const Columns& columns);

}  // namespace graft::data
