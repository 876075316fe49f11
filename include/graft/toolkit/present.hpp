// Writes the complete result of a call: as JSON for programs, as an HTML page for people.
#pragma once

#include <string>

#include "graft/toolkit/auto.hpp"
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

/// Returns the JSON that the command for this report prints with --json (docs/schema), such as `graft inspect` for an
/// InspectReport. Models have the name Model::source, and files that were not written have an empty name.
[[nodiscard]] GRAFT_API std::string to_json(const InspectReport& report);
[[nodiscard]] GRAFT_API std::string to_json(const ConvertReport& report);
[[nodiscard]] GRAFT_API std::string to_json(const VerifyResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const LayersResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const QuantizeReport& report);
[[nodiscard]] GRAFT_API std::string to_json(const BuildReport& report);
[[nodiscard]] GRAFT_API std::string to_json(const CanaryResult& result);
[[nodiscard]] GRAFT_API std::string to_json(const AutoReport& report);
/// Returns the value of the key `cut` in the JSON of `graft convert --cut --json`.
[[nodiscard]] GRAFT_API std::string to_json(const CutResult& result);

/// Returns the HTML page that the command for this report writes with --report (the guide "Look at a network:
/// reports"). The page needs no other file and no network.
[[nodiscard]] GRAFT_API std::string to_page(const InspectReport& report);
[[nodiscard]] GRAFT_API std::string to_page(const ConvertReport& report);
[[nodiscard]] GRAFT_API std::string to_page(const VerifyResult& result);
[[nodiscard]] GRAFT_API std::string to_page(const LayersResult& result);
[[nodiscard]] GRAFT_API std::string to_page(const QuantizeReport& report);
/// Returns the page that `graft auto` writes to its folder.
[[nodiscard]] GRAFT_API std::string to_page(const AutoReport& report);
/// Returns the part of the page of `graft convert --cut --report` that describes the cut.
[[nodiscard]] GRAFT_API std::string to_page(const CutResult& result);

}  // namespace graft::toolkit
