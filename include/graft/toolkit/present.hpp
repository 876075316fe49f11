// What a call found out in full: as JSON for programs, as a page for people.
#pragma once

#include <string>

#include "graft/toolkit/build.hpp"
#include "graft/toolkit/canary.hpp"
#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/cut.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/verify.hpp"
#include "graft/toolkit/verify_layers.hpp"

namespace graft::toolkit {

/// What the command of that name prints with --json (docs/schema). Models are called as Model::source calls them, and
/// files that were not written have an empty name. Throws Error for a result that no call returned.
[[nodiscard]] GRAFT_API std::string to_json(const InspectResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const ConvertResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const VerifyResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const LayersResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const QuantizeResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const BuildResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const CanaryResult& result);
/// The key `cut` of what `graft convert --cut --json` prints.
[[nodiscard]] GRAFT_API std::string to_json(const CutResult& result);

/// The page that the command writes with --report (docs/guide/reports.md): it needs no other file and no network.
[[nodiscard]] GRAFT_API std::string to_page(const InspectResult& result);
[[nodiscard]] GRAFT_API std::string to_page(const ConvertResult& result);
[[nodiscard]] GRAFT_API std::string to_page(const VerifyResult& result);
[[nodiscard]] GRAFT_API std::string to_page(const LayersResult& result);
[[nodiscard]] GRAFT_API std::string to_page(const QuantizeResult& result);
/// The part of the page of `graft convert --cut --report` that is about the cut.
[[nodiscard]] GRAFT_API std::string to_page(const CutResult& result);

}  // namespace graft::toolkit
