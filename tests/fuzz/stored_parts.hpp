// Reads the stored cases of an importer; the caller joins the parts of each case to a file.
#pragma once

#include <map>
#include <string>

#include "io/npy.hpp"
#include "tests/support/folders.hpp"

namespace graft::fuzz {

/// Returns the bytes under `<case>/<part>` of tests/golden/<folder>/cases.npz, by case.
inline std::map<std::string, std::string> stored_parts(const std::string& folder, const std::string& part) {
  std::map<std::string, std::string> result;
  for (const auto& [name, array] : io::read_npz(golden_folder() / folder / "cases.npz")) {
    const auto slash = name.find('/');
    if (name.substr(slash + 1) != part) continue;
    result[name.substr(0, slash)] = {reinterpret_cast<const char*>(array.data.data()), array.data.size()};
  }
  return result;
}

}  // namespace graft::fuzz
