// From the driver's account of the libraries.
#include "present/text/plugins_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <utility>

#include "engine/engine_session.hpp"

namespace graft::present {
namespace {

using Json = nlohmann::ordered_json;

std::string tensorrt_text(const Json& identity) {
  return graft::engine::tensorrt_text(identity.value("flavor", ""), identity.value("version", ""));
}

std::string fields_text(const Json& creator) {
  std::string text;
  for (const auto& field : creator["fields"]) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.value("name", ""), field.value("type", ""));
    if (field.value("length", 0) > 1) text += fmt::format("[{}]", field.value("length", 0));
  }
  return text.empty() ? "no fields" : text;
}

struct Tally {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t not_checked = 0;
};

Tally tally_of(const Json& creator) {
  Tally tally;
  for (const Json& check : creator["checks"]) {
    const std::string outcome = check.value("outcome", "");
    ++(outcome == "passed" ? tally.passed : outcome == "failed" ? tally.failed : tally.not_checked);
  }
  return tally;
}

}  // namespace

Listing plugins_text(const toolkit::PluginsReport& report, const std::vector<std::string>& libraries) {
  std::size_t count = 0;
  Table table;
  for (const Json& library : report.libraries) {
    for (const Json& creator : library["creators"]) {
      const std::string space = creator.value("namespace", "");
      table.add({{creator.value("name", ""), Color::strong},
                 creator.value("version", ""),
                 {space.empty() ? "-" : space, Color::faint},
                 creator.value("generation", ""),
                 fields_text(creator)});
      ++count;
    }
  }
  Listing listing;
  listing.add(fmt::format("{}: {} in the registry of {}", fmt::join(libraries, ", "), count_text(count, "creator"),
                          tensorrt_text(report.tensorrt)));
  if (count != 0) {
    listing.add("");
    listing.add(std::move(table));
  }
  return listing;
}

Listing checks_text(const toolkit::PluginsReport& report, bool verbose) {
  Table table;
  std::size_t creators = 0;
  std::size_t non_conforming = 0;
  std::size_t not_checked = 0;
  for (const Json& library : report.libraries) {
    for (const Json& creator : library["creators"]) {
      const Tally tally = tally_of(creator);
      ++creators;
      non_conforming += tally.failed != 0 ? 1 : 0;
      not_checked += tally.not_checked;
      table.add({tally.failed != 0 ? Cell("fails", Color::bad) : Cell("conforms", Color::good),
                 {creator.value("name", ""), Color::strong},
                 creator.value("version", ""),
                 fmt::format("{} passed, {} failed, {} not made", count_text(tally.passed, "check"), tally.failed,
                             tally.not_checked)});
      for (const Json& check : creator["checks"]) {
        const std::string outcome = check.value("outcome", "");
        const bool is_failed = outcome == "failed";
        if (!is_failed && (outcome == "passed" || !verbose)) continue;
        table.add({"",
                   {check.value("check", ""), Color::faint},
                   "",
                   {fmt::format("{}{}", is_failed ? "" : "not checked: ", check.value("detail", "")),
                    is_failed ? Color::bad : Color::faint}});
      }
    }
  }
  Listing listing;
  listing.add(fmt::format("{} of {} {} to what {} asks of plugins{}", creators - non_conforming,
                          count_text(creators, "creator"), creators - non_conforming == 1 ? "conforms" : "conform",
                          tensorrt_text(report.tensorrt),
                          not_checked == 0 || verbose
                              ? ""
                              : fmt::format("; {} could not be made, -v says why", count_text(not_checked, "check"))));
  listing.add("");
  listing.add(std::move(table));
  listing.add("");
  // What conforms reads like an approval of all of it.
  const bool builds = report.tensorrt.value("flavor", "") != "lean";
  listing.add(fmt::format("Checked: what creators and plugins answer{}.",
                          builds ? ", and whether an engine with each builds" : ""));
  listing.add(
      "Not checked: what the kernels compute. On a machine with a GPU that is compared by `graft canary`, in a");
  listing.add("network, and for operators of your own by the program NAME_cases of a project of `graft new`.");
  return listing;
}

}  // namespace graft::present
