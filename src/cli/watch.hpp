// Connects work of the toolkit to this program's progress bar and interruption.
#pragma once

#include "cli/console.hpp"
#include "cli/interrupts.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::cli {

/// Returns a watch that shows the toolkit's progress on `progress`, which must outlive the watch. The end of the work
/// is not shown, because the command reports it.
[[nodiscard]] inline toolkit::Watch watch_of(Progress& progress) {
  return {.progress =
              [&progress](double fraction, std::string_view text) {
                if (fraction < 1) progress.update(text, fraction);
              },
          .cancel = interruption()};
}

}  // namespace graft::cli
