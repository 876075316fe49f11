// `graft doctor` in words.
#pragma once

#include <string>
#include <vector>

#include "present/json/values.hpp"
#include "present/text/listing.hpp"
#include "toolkit/doctor.hpp"

namespace graft::present {

/// One thing that was looked for.
struct Finding {
  std::string name;
  bool found = false;
  bool needed = false;  ///< For the main job: convert, verify, build.
  std::string text = {};
  std::string remedy = {};  ///< What to type where it is missing.
  Json facts = Json::object();
  bool for_projects = false;  ///< Operators of one's own are compiled with it.
};

[[nodiscard]] std::vector<Finding> findings_of(const toolkit::Diagnosis& diagnosis);

/// Whether all that is needed was found.
[[nodiscard]] bool is_complete(const std::vector<Finding>& findings);

[[nodiscard]] Listing doctor_text(const std::vector<Finding>& findings);

}  // namespace graft::present
