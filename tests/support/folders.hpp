// The folders of stored test data.
#pragma once

#include <filesystem>

namespace graft {

/// Returns `tests/golden`: networks, with the results of the frameworks.
[[nodiscard]] std::filesystem::path golden_folder();

}  // namespace graft
