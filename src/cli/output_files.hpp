// Checks that a command does not overwrite a file that it reads.
#pragma once

#include <string>
#include <vector>

namespace graft::cli {

/// A file of the command line and its role: "-o", "the model itself".
struct NamedFile {
  std::string what;
  std::string path;  ///< Empty if the option was not given.
};

/// Throws Error if a file to be written is also read or would be written twice, even under different names. Commands
/// call it before long work.
void check_files_apart(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

}  // namespace graft::cli
