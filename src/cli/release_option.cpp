// An unknown release is refused with the list of known releases.
#include "cli/release_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "graft/toolkit/inspect.hpp"

namespace graft::cli {

Check known_release() {
  return {.words = {},
          .fault = [](const std::string& text) -> std::string {
            if (toolkit::is_release(text)) return {};
            return fmt::format("found {}; the release must be one of {}", text, fmt::join(toolkit::releases(), ", "));
          },
          .type = {},
          .allowed = fmt::format("{{{}}}", fmt::join(toolkit::releases(), ","))};
}

}  // namespace graft::cli
