// Looks up tables that tools/tensorrt_versions.py generates from measurements and public documents.
#include "inspect/tensorrt_release.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "graft/error.hpp"

namespace graft::inspect {
namespace {

/// Returns a number that is larger for later releases of the same flavor.
constexpr int order(int major, int minor) { return major * 100 + minor; }
constexpr int no_end = order(99, 99);

struct ReleaseRow {
  Flavor flavor;
  int major;
  int minor;
  std::string_view version;  ///< The version that was measured; for the full TensorRT, the release.
};

/// Whether TensorRT runs an operator, and in which types. Valid for the releases from `since` on and before `until`,
/// both in the numbers of order().
struct OperatorRow {
  Flavor flavor;
  std::string_view name;
  int since;
  int until;
  Answer runs;
  std::string_view types;
  std::string_view open;
  std::size_t port;
  std::string_view source;  ///< The source of the fact; empty if it was measured.
};

struct FormRow {
  Flavor flavor;
  std::string_view name;
  int since;
  int until;
  Answer runs;
  std::string_view source;
};

constexpr auto release_rows = std::to_array<ReleaseRow>({
#define GRAFT_RELEASE(flavor, major, minor, version) {Flavor::flavor, major, minor, version},
#include "inspect/tensorrt_versions.inc"
});

constexpr auto operator_rows = std::to_array<OperatorRow>({
#define GRAFT_OPERATOR(flavor, name, since, until, runs, types, open, port, source) \
  {Flavor::flavor, name, since, until, Answer::runs, types, open, port, source},
#include "inspect/tensorrt_versions.inc"
});

constexpr auto form_rows = std::to_array<FormRow>({
#define GRAFT_FORM(flavor, name, since, until, runs, source) {Flavor::flavor, name, since, until, Answer::runs, source},
#include "inspect/tensorrt_versions.inc"
});

template <class Row>
bool holds(const Row& row, const Release& release, std::string_view name) {
  const int number = order(release.major, release.minor);
  return row.flavor == release.flavor && row.name == name && row.since <= number && number < row.until;
}

const ReleaseRow* row_of(const Release& release) {
  const auto* row = std::find_if(release_rows.begin(), release_rows.end(), [&](const ReleaseRow& each) {
    return each.flavor == release.flavor && each.major == release.major && each.minor == release.minor;
  });
  return row == release_rows.end() ? nullptr : row;
}

/// Returns the name and full version of the TensorRT-RTX with which the operators were tried for this release, such as
/// "TensorRT-RTX 1.5.0.114". Returns "TensorRT-RTX ?" for an unknown release.
std::string asked_version(const Release& release) {
  const ReleaseRow* row = row_of(release);
  return fmt::format("TensorRT-RTX {}", row == nullptr ? "?" : row->version);
}

std::string source_of(const Release& release, std::string_view source) {
  return source.empty() ? fmt::format("measured in {}", asked_version(release)) : std::string(source);
}

/// Parses a non-negative integer at the beginning of `text`, removes it from `text` and returns it. Returns nothing if
/// `text` does not begin with a digit.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

constexpr std::string_view word_of(Flavor flavor) { return flavor == Flavor::rtx ? "rtx" : "tensorrt"; }

}  // namespace

Release newest_measured_release() {
  Release newest;
  for (const ReleaseRow& row : release_rows) {
    if (row.flavor == Flavor::rtx) newest = {row.flavor, row.major, row.minor};
  }
  return newest;
}

std::optional<Release> find_release(std::string_view name) {
  for (const Flavor flavor : {Flavor::rtx, Flavor::full}) {
    const std::string prefix = fmt::format("{}-", word_of(flavor));
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = name.substr(prefix.size());
    const std::optional<int> major = take_number(rest);
    if (!major || !rest.starts_with('.')) return std::nullopt;
    rest.remove_prefix(1);
    const std::optional<int> minor = take_number(rest);
    if (!minor) return std::nullopt;
    while (rest.starts_with('.')) {
      rest.remove_prefix(1);
      if (!take_number(rest)) return std::nullopt;
    }
    const Release release{flavor, *major, *minor};
    return rest.empty() && row_of(release) != nullptr ? std::optional(release) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::string> release_names() {
  std::vector<std::string> names;
  for (const ReleaseRow& row : release_rows) names.push_back(name_of({row.flavor, row.major, row.minor}));
  return names;
}

Release release_of(std::string_view name, std::string_view setting) {
  if (const auto release = find_release(name)) return *release;
  throw Error(fmt::format("{}: Graft has no data on the release '{}'\nUse the nearest of the releases {}", setting,
                          name, fmt::join(release_names(), ", ")));
}

std::string name_of(const Release& release) {
  return fmt::format("{}-{}.{}", word_of(release.flavor), release.major, release.minor);
}

report::TensorRTIdentity identity_of(const Release& release) {
  return {.flavor = release.flavor == Flavor::rtx ? "rtx" : "full",
          .module = {},
          .version = fmt::format("{}.{}", release.major, release.minor)};
}

std::string title_of(const Release& release) { return identity_of(release).title(); }

OperatorFact operator_fact(const Release& release, std::string_view op_type) {
  const auto* row = std::find_if(operator_rows.begin(), operator_rows.end(),
                                 [&](const OperatorRow& each) { return holds(each, release, op_type); });
  if (row == operator_rows.end()) return {};
  return {.runs = row->runs,
          .types = row->types,
          .open = row->open,
          .port = row->port,
          .source = source_of(release, row->source)};
}

FormFact form_fact(const Release& release, std::string_view form) {
  const auto* row =
      std::find_if(form_rows.begin(), form_rows.end(), [&](const FormRow& each) { return holds(each, release, form); });
  if (row == form_rows.end()) return {};
  return {.runs = row->runs, .source = source_of(release, row->source)};
}

std::optional<std::string> refusal_of_plugins(const Release& release) {
  const FormFact known = form_fact(release, "plugin_in_network");
  if (known.runs != Answer::no) return std::nullopt;
  return fmt::format("{} cannot add a plugin to a network ({})", title_of(release), known.source);
}

Answer builds_plugins_in_bodies(const Release& release) { return form_fact(release, "plugin_in_body").runs; }

std::optional<std::string> refusal_of_plugins_in_bodies(const Release& release) {
  const FormFact known = form_fact(release, "plugin_in_body");
  switch (known.runs) {
    case Answer::yes: return std::nullopt;
    case Answer::no:
      return fmt::format("{} builds no plugin in the body of an If, Loop or Scan ({})", title_of(release),
                         known.source);
    case Answer::unknown: break;
  }
  return fmt::format("no public document states whether {} builds a plugin in the body of an If, Loop or Scan",
                     title_of(release));
}

bool has_multi_head_attention(const Release& release) {
  return release.flavor == Flavor::rtx && operator_fact(release, "MultiHeadAttention").runs == Answer::yes;
}

std::vector<std::string> guards_for(const Release& release) {
  const bool is_wrong = form_fact(release, "grid_sample_of_detr").runs == Answer::no;
  return is_wrong ? std::vector<std::string>{"guard_grid_sample"} : std::vector<std::string>();
}

std::vector<std::string> lowerings_for(const Release& release) {
  const bool is_refused = form_fact(release, "grid_sample_rank_5").runs == Answer::no;
  return is_refused ? std::vector<std::string>{"lower_volume_sampling"} : std::vector<std::string>();
}

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace graft::inspect
