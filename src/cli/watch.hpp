// Work of the toolkit with this program's progress bar and interruption.
#pragma once

#include "cli/console.hpp"
#include "cli/interrupts.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::cli {

/// What the toolkit tells goes to `progress`, which has to live as long; the end of the work is what the command says.
[[nodiscard]] inline toolkit::Watch watch_of(Progress& progress) {
  return {.progress =
              [&progress](double fraction, std::string_view text) {
                if (fraction < 1) progress.update(text, fraction);
              },
          .cancel = interruption()};
}

}  // namespace graft::cli
