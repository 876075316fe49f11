// `graft inspect` in words.
#pragma once

#include <string>
#include <vector>

#include "present/text/listing.hpp"
#include "toolkit/inspect.hpp"

namespace graft::present {

/// Returns who judged, and what was and was not tried: "TensorRT-RTX 1.7.1.116 built the model".
[[nodiscard]] std::string answered_by(const toolkit::Inspection& inspection);

/// The model, how many nodes have each verdict, then problems, the worst before the others, a little of what there is
/// to say of the rest, what is plainly native, on one line, and the commands that come next. With `all` every node.
[[nodiscard]] Listing inspect_text(const toolkit::Inspection& inspection, bool all);

/// A warning for each plugin that TensorRT makes of a node from other values than the model has.
[[nodiscard]] std::vector<std::string> plugin_warnings(const toolkit::Inspection& inspection);

/// What was asked of TensorRT, and the parts that were written; empty where it was not asked.
[[nodiscard]] Listing probe_text(const toolkit::Inspection& inspection);

/// Why there is nothing to reduce to `file`.
[[nodiscard]] std::string nothing_reduced_text(const toolkit::Inspection& inspection, const std::string& file);

}  // namespace graft::present
