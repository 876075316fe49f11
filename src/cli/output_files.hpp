// The files that a command writes are none of those that it reads.
#pragma once

#include <string>
#include <vector>

namespace graft::cli {

/// A file of the command line, and what it is there: "-o", "the model itself".
struct NamedFile {
  std::string what;
  std::string path;  ///< Empty where the option was not given.
};

/// Throws Error where a file to be written is one that is read, or is to be written twice, under whatever name. Before
/// long work.
void check_files_apart(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

}  // namespace graft::cli
