// trtexec's spellings of the options of `graft build`.
#pragma once

#include <string>
#include <vector>

namespace graft::cli {

/// A command line in Graft's options, and what its user is told about the way there.
struct TrtexecTranslation {
  std::vector<std::string> words;
  std::vector<std::string> notes;
};

/// Replaces trtexec's options by Graft's; what is Graft's already stays as it is. `words` follow `graft build`. Throws
/// Error for an option of trtexec's that says nothing here, with what to do instead.
[[nodiscard]] TrtexecTranslation translate_trtexec(const std::vector<std::string>& words);

}  // namespace graft::cli
