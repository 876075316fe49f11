// Writes the creators of the libraries, and their checks, as tables.
#include "present/text/plugins_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace graft::present {
namespace {

using report::PluginCheck;
using report::PluginCreator;
using report::PluginLibrary;

std::string fields_text(const PluginCreator& creator) {
  std::string text;
  for (const report::PluginField& field : creator.plugin_fields) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.name, field.type);
    if (field.length > 1) text += fmt::format("[{}]", field.length);
  }
  return text.empty() ? "no fields" : text;
}

/// A check that was not made, with the first creator for which it was not made and the number of such creators.
struct LeftOut {
  std::string check;
  std::string creator;
  std::string why;
  std::size_t creators = 0;
};

std::vector<LeftOut> left_out_checks(const report::PluginsReport& report) {
  std::vector<LeftOut> found;
  for (const PluginLibrary& library : report.libraries) {
    for (const PluginCreator& creator : library.creators) {
      for (const PluginCheck& check : creator.checks) {
        if (check.is_passed() || check.is_failed()) continue;
        auto same =
            std::find_if(found.begin(), found.end(), [&](const LeftOut& each) { return each.check == check.check; });
        if (same == found.end()) {
          found.push_back({.check = check.check, .creator = creator.name, .why = check.detail});
          same = found.end() - 1;
        }
        ++same->creators;
      }
    }
  }
  return found;
}

}  // namespace

Listing plugins_text(const report::PluginsReport& report, const std::vector<std::string>& libraries) {
  std::size_t count = 0;
  Table table;
  for (const PluginLibrary& library : report.libraries) {
    for (const PluginCreator& creator : library.creators) {
      table.add({{creator.name, Color::strong},
                 creator.version,
                 {creator.plugin_namespace.empty() ? "-" : creator.plugin_namespace, Color::faint},
                 creator.generation,
                 fields_text(creator)});
      ++count;
    }
  }
  Listing listing;
  listing.add(fmt::format("{}: {} in the registry of {}", fmt::join(libraries, ", "), count_text(count, "creator"),
                          report.tensorrt.title()));
  if (count != 0) {
    listing.add("");
    listing.add(std::move(table));
  }
  return listing;
}

Listing checks_text(const report::PluginsReport& report, bool verbose) {
  Table table;
  std::size_t creators = 0;
  std::size_t failing = 0;
  for (const PluginLibrary& library : report.libraries) {
    for (const PluginCreator& creator : library.creators) {
      report::CheckCounts counts;
      counts.add(creator.checks);
      ++creators;
      failing += counts.failed != 0 ? 1 : 0;
      table.add({counts.failed != 0     ? Cell("fails", Color::bad)
                 : counts.left_out != 0 ? Cell("no failure found")
                                        : Cell("conforms", Color::good),
                 {creator.name, Color::strong},
                 creator.version,
                 fmt::format("{} of {} made{}", counts.made(), count_text(counts.all(), "check"),
                             counts.failed == 0 ? "" : fmt::format(", {} failed", counts.failed))});
      for (const PluginCheck& check : creator.checks) {
        if (check.is_passed() || (!check.is_failed() && !verbose)) continue;
        table.add({"",
                   {check.check, Color::faint},
                   "",
                   {fmt::format("{}{}", check.is_failed() ? "" : "not made: ", check.detail),
                    check.is_failed() ? Color::bad : Color::faint}});
      }
    }
  }
  const report::CheckCounts counts = report.checks.value_or(report::CheckCounts());
  const std::string made =
      fmt::format("{} of {} made with {}", counts.made(), count_text(counts.all(), "check"), report.tensorrt.title());
  Listing listing;
  listing.add(failing != 0           ? fmt::format("{} of {} fail{}; {}", failing, count_text(creators, "creator"),
                                         failing == 1 ? "s" : "", made)
              : counts.left_out == 0 ? fmt::format("{} passed every check; {}", count_text(creators, "creator"), made)
                                     : fmt::format("no failure found; {}", made));
  listing.add("");
  listing.add(std::move(table));
  if (const std::vector<LeftOut> left_out = left_out_checks(report); !left_out.empty()) {
    listing.add("");
    listing.add(verbose ? "Checks that were not made:"
                        : "Checks that were not made (-v shows the reason for each creator):");
    Table reasons;
    for (const LeftOut& each : left_out) {
      reasons.add({{each.check, Color::strong},
                   each.creators == 1 ? each.creator : fmt::format("{} creators", each.creators),
                   each.creators == 1 ? each.why : fmt::format("{}: {}", each.creator, each.why)});
    }
    listing.add(std::move(reasons));
  }
  listing.add("");
  const bool builds = report.tensorrt.flavor != "lean";
  listing.add(fmt::format("Checked: the return values of creators and plugins{}.",
                          builds ? ", and whether an engine with each builds" : ""));
  listing.add(
      "Not checked: the results of the kernels. On a machine with a GPU, `graft canary` compares them in a network,");
  listing.add("and the program NAME_cases of a project of `graft new` compares them for operators of your own.");
  return listing;
}

}  // namespace graft::present
