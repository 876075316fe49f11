// How messages and help pages name the guides. A checkout has them in docs/guide, a wheel and an installation in
// share/doc/graft/docs/guide, and the web pages list them by title, so a guide is named by its title and its file.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace graft {

struct GuidePage {
  std::string_view file;   ///< The name of the file without .md.
  std::string_view title;  ///< The title of the page.
};
inline constexpr std::array guide_pages = {
    GuidePage{"add_an_operator", "Your first operator"},
    GuidePage{"cut_a_network", "TensorRT does not run a part of the network"},
    GuidePage{"data", "Give data to Graft"},
    GuidePage{"from_tensorflow", "You have a frozen TensorFlow graph"},
    GuidePage{"many_machines", "Calibrate and compare on many machines"},
    GuidePage{"operator_definition", "The definition of an operator"},
    GuidePage{"quantized_networks", "TensorRT refuses a quantized network"},
    GuidePage{"rules", "Change a network with rules"},
};

/// Returns a guide as messages name it: `the guide "Your first operator" (add_an_operator.md)`. `file` must be in
/// guide_pages.
[[nodiscard]] inline std::string guide_page(std::string_view file) {
  for (const GuidePage& page : guide_pages) {
    if (page.file != file) continue;
    return "the guide \"" + std::string(page.title) + "\" (" + std::string(file) + ".md)";
  }
  throw std::logic_error("no guide " + std::string(file));
}

}  // namespace graft
