// SOURCE_DATE_EPOCH is the convention of https://reproducible-builds.org for programs that write dates.
#include "core/report_date.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "graft/error.hpp"

namespace graft {
namespace {

std::int64_t seconds_since_epoch() {
  const char* const chosen = std::getenv("SOURCE_DATE_EPOCH");  // NOLINT(concurrency-mt-unsafe): nothing writes it
  if (chosen == nullptr || *chosen == '\0') {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
  }
  constexpr std::int64_t last = 253402300799;  // the last second of the year 9999
  const std::string_view text = chosen;
  std::int64_t seconds = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > last) {
    throw Error(fmt::format(
        "SOURCE_DATE_EPOCH: expected the seconds since 1970-01-01 as an integer from 0 to {}, found \"{}\"\n"
        "Unset the variable, or set it as in SOURCE_DATE_EPOCH=$(date +%s)",
        last, text));
  }
  return seconds;
}

}  // namespace

std::string report_date() {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds_since_epoch())};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

}  // namespace graft
