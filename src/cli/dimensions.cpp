// Parses shapes of the command line.
#include "cli/dimensions.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "graft/error.hpp"

namespace graft::cli {

TypedShapes parse_shapes(const std::string& option, const std::vector<std::string>& texts, bool unknown_allowed) {
  TypedShapes shapes;
  for (const std::string& text : texts) {
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("{} {}: {}\nWrite NAME:SIZES, for example image:1x3x224x224{}", option, text, why,
                              unknown_allowed ? ", with ? for a dynamic size" : ""));
    };
    // Names may contain colons, so that the last colon ends the name. --shapes and --data use an equals sign instead.
    const std::size_t colon = text.find_last_of(":=");
    if (colon == std::string::npos || colon == 0) refuse("there is no name before a colon");
    std::vector<std::int64_t> sizes;
    std::string_view rest = std::string_view(text).substr(colon + 1);
    while (true) {
      const std::string_view part = rest.substr(0, rest.find('x'));
      std::int64_t size = -1;
      if (!(unknown_allowed && (part == "?" || part == "-1"))) {
        const auto [end, failed] = std::from_chars(part.data(), part.data() + part.size(), size);
        if (failed != std::errc{} || end != part.data() + part.size()) refuse(fmt::format("'{}' is not a size", part));
        if (size < 1) refuse(fmt::format("found a size of {}, the minimum is 1", size));
      }
      sizes.push_back(size);
      if (part.size() == rest.size()) break;
      rest = rest.substr(part.size() + 1);
    }
    if (!shapes.emplace(text.substr(0, colon), std::move(sizes)).second) refuse("this input is given twice");
  }
  return shapes;
}

}  // namespace graft::cli
