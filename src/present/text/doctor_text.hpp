// The result of `graft doctor` in words.
#pragma once

#include <string>
#include <vector>

#include "present/json/values.hpp"
#include "present/text/listing.hpp"
#include "toolkit/doctor.hpp"

namespace graft::present {

/// A program, library or device that `graft doctor` searched for.
struct Finding {
  std::string name;
  bool found = false;
  bool needed = false;  ///< Whether convert, verify and build need it.
  std::string text = {};
  std::string remedy = {};  ///< The command that installs it, shown if it is missing.
  Json facts = Json::object();
  bool for_projects = false;  ///< Whether projects of `graft new` are compiled with it.
};

[[nodiscard]] std::vector<Finding> findings_of(const toolkit::Diagnosis& diagnosis);

/// Whether every needed thing was found.
[[nodiscard]] bool is_complete(const std::vector<Finding>& findings);

[[nodiscard]] Listing doctor_text(const std::vector<Finding>& findings);

}  // namespace graft::present
