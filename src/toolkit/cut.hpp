// Cuts of networks that were inspected or converted before, for the program.
#pragma once

#include <optional>

#include "graft/toolkit/cut.hpp"
#include "import/cut_network.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/inspect.hpp"

namespace graft::toolkit {

/// A converted network with the verdicts on its nodes, as `probe` takes it.
[[nodiscard]] Inspection inspection_of(const Conversion& conversion);

/// `cut` after `inspect`; of the options, what is in `inspect` is not looked at.
[[nodiscard]] std::optional<CutResult> cut(const Inspection& inspection, const CutOptions& options);

/// Whether `cut` leaves TensorRT anything to compute.
[[nodiscard]] bool can_be_cut(const Inspection& inspection);

/// Throws Error for a file that names both halves of a network, naming the one that TensorRT runs. Messages call the
/// file `name`.
void check_is_one_network(const std::filesystem::path& file, const std::string& name);

/// The files that `save` writes.
[[nodiscard]] CutFiles cut_files(const std::filesystem::path& file);

}  // namespace graft::toolkit
