#include "core/parts.hpp"

#include <algorithm>
#include <iterator>

#include "graft/error.hpp"

namespace graft {

void CoveredSamples::add(SampleRange part) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Error::Kind::internal, "a part of the " + work_ + " has the samples " + std::to_string(part.begin) +
                                           " to " + std::to_string(part.end) + ": " + why);
  };
  if (part.begin >= part.end || part.begin < whole_.begin || part.end > whole_.end) {
    refuse("the samples of the parts are " + std::to_string(whole_.begin) + " to " + std::to_string(whole_.end));
  }
  const auto next = parts_.lower_bound(part.begin);
  const bool overlaps_next = next != parts_.end() && next->first < part.end;
  const bool overlaps_previous = next != parts_.begin() && std::prev(next)->second > part.begin;
  if (overlaps_next || overlaps_previous) refuse("another part has some of them too");
  parts_.emplace_hint(next, part.begin, part.end);
  count_ += part.size();
}

void CoveredSamples::check_complete() const {
  std::int64_t covered = whole_.begin;
  for (const auto& [begin, end] : parts_) {
    if (begin != covered) break;
    covered = end;
  }
  if (covered == whole_.end) return;
  throw Error(Error::Kind::internal,
              "no part of the " + work_ + " has sample " + std::to_string(covered) + ", so the result would lack it");
}

}  // namespace graft
