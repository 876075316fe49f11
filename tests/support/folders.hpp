// Where tests find stored data.
#pragma once

#include <filesystem>

namespace graft {

/// `tests/golden`: results of the frameworks, with the networks that they were made from.
[[nodiscard]] std::filesystem::path golden_folder();

}  // namespace graft
