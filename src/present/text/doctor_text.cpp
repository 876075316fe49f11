// Lists the findings, and the remedies of needed things that are missing.
#include "present/text/doctor_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

namespace graft::present {
namespace {

using report::Finding;

/// Returns a sentence that states whether the tools for building a project of `graft new` were found, and what to
/// install otherwise; empty if the driver lists no tools.
std::string project_text(const std::vector<Finding>& findings) {
  std::vector<std::string> missing;
  const Finding* nvcc = nullptr;
  for (const Finding& finding : findings) {
    if (!finding.for_projects) continue;
    if (finding.name == "nvcc") {
      nvcc = &finding;
    } else if (!finding.found) {
      missing.push_back(finding.remedy);
    }
  }
  if (nvcc == nullptr) return "";
  if (!missing.empty()) {
    return fmt::format("Operators of your own (`graft new`) cannot be built; to build them: {}",
                       fmt::join(missing, "; "));
  }
  return nvcc->found
             ? "Everything is installed to build operators of your own (`graft new`), with plugins."
             : fmt::format("Operators of your own (`graft new`) can be built, but without plugins; for plugins: {}",
                           nvcc->remedy);
}

}  // namespace

Listing doctor_text(const report::DoctorReport& report) {
  Table table;
  Table remedies;
  for (const Finding& finding : report.findings) {
    const Cell mark = finding.found          ? Cell("ok", Color::good)
                      : finding.is_missing() ? Cell("missing", Color::bad)
                                             : Cell("-", Color::faint);
    table.add({mark, {finding.name, Color::strong}, {finding.text, finding.found ? Color::none : Color::faint}});
    if (finding.is_missing()) remedies.add({finding.name, finding.remedy});
  }
  Listing listing;
  listing.add("graft " + report.version);
  listing.add("");
  listing.add(std::move(table));
  listing.add("");
  if (report.is_complete()) {
    listing.add("Everything is installed to convert, verify and build.");
  } else {
    listing.add("Missing, and how to install it:");
    listing.add(std::move(remedies));
  }
  if (const std::string text = project_text(report.findings); !text.empty()) listing.add(text);
  return listing;
}

}  // namespace graft::present
