// Translates trtexec's options to options of `graft build`.
#pragma once

#include <string>
#include <vector>

namespace graft::cli {

/// A command line with Graft's options, and notes for the user about the translation.
struct TrtexecTranslation {
  std::vector<std::string> words;
  std::vector<std::string> notes;
};

/// Replaces trtexec's options with Graft's, and keeps all other words. `words` are the words after `graft build`.
/// Throws Error for an option of trtexec that `graft build` does not have, with the alternative.
[[nodiscard]] TrtexecTranslation translate_trtexec(const std::vector<std::string>& words);

}  // namespace graft::cli
