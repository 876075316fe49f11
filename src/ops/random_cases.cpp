// Random problems: random choices, and lists of distinct problems.
#include "ops/random_cases.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>

namespace graft::ops {
namespace {

/// Returns a string of the inputs and attributes of a problem. Two problems with the same string are equal.
std::string text_of(const TimedCase& timed) {
  std::string text;
  for (const TensorDesc& desc : timed.inputs) text += to_string(desc) + ' ';
  for (const auto& [name, value] : timed.attributes) text += name + '=' + to_string(value) + ' ';
  return text;
}

/// Returns a hash of an operator's name, which is combined with the seed so that operators do not share a random
/// sequence.
std::uint64_t hash_of(std::string_view name) {
  constexpr std::uint64_t basis = 14695981039346656037U;
  constexpr std::uint64_t prime = 1099511628211U;
  std::uint64_t hash = basis;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * prime;
  return hash;
}

}  // namespace

std::int64_t Draw::integer(const SizeRange& range) {
  const std::int64_t first = (range.least + range.step - 1) / range.step;
  const std::int64_t count = range.most / range.step - first + 1;
  if (count <= 0) throw std::invalid_argument("the range contains no multiple of its step");
  return (first + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(count))) * range.step;
}

std::int64_t Draw::size(const SizeRange& range) {
  constexpr double steps = 1 << 20;
  const double part = static_cast<double>(integer({0, (1 << 20) - 1})) / steps;
  const std::int64_t lowest = (range.least + range.step - 1) / range.step;
  const std::int64_t highest = range.most / range.step;
  const auto least = static_cast<double>(lowest);
  const auto most = static_cast<double>(highest + 1);
  const double value = least > 0 ? least * std::pow(most / least, part) : std::pow(most + 1, part) - 1;
  return std::clamp(static_cast<std::int64_t>(value), lowest, highest) * range.step;
}

Extents extents_of(const std::vector<std::int64_t>& sizes) {
  Extents extents;
  if (const Status status = Extents::make(sizes, extents); !status.ok()) throw std::invalid_argument(status.message());
  return extents;
}

std::int64_t draw_channels(Draw& draw, std::int64_t least, std::int64_t most) {
  constexpr std::int64_t vector = 8;
  const bool is_multiple = draw.chance(75) && most >= vector;
  return draw.size({least, most, is_multiple ? vector : 1});
}

std::vector<TimedCase> random_cases(const OperatorType& type, DrawCase draw, std::uint64_t seed, int count) {
  Draw from(seed ^ hash_of(type.name));
  std::vector<TimedCase> list;
  std::set<std::string> known;
  // An operator may have fewer distinct problems than `count`.
  for (int tries = 0; tries < 100 * count && static_cast<int>(list.size()) < count; ++tries) {
    TimedCase timed = draw(from);
    if (known.insert(text_of(timed)).second) list.push_back(std::move(timed));
  }
  return list;
}

}  // namespace graft::ops
