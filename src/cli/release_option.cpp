// What is not known is answered with all that is.
#include "cli/release_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "toolkit/inspect.hpp"

namespace graft::cli {

Check known_release() {
  return {.words = {},
          .fault = [](const std::string& text) -> std::string {
            if (toolkit::is_release(text)) return {};
            return fmt::format("found {}, allowed are {}", text, fmt::join(toolkit::releases(), ", "));
          },
          .type = {},
          .allowed = fmt::format("{{{}}}", fmt::join(toolkit::releases(), ","))};
}

}  // namespace graft::cli
