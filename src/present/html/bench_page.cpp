// Selects the figures of each chart; the viewer draws the charts.
#include "present/html/bench_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "present/html/page.hpp"

namespace graft::present {
namespace {

using html::Tone;
using Type = html::Column::Type;
using Number = std::optional<double>;
using report::CaseTimes;
using report::OperatorTimes;
/// A pointer to the member of PeerTimes that holds one figure, for example the cold time.
using Figure = report::PeerTimes::Figure report::PeerTimes::*;

constexpr const char* good = "good";
constexpr const char* short_of = "short";
constexpr const char* failed = "failed";

struct Series {
  std::string_view key;
  std::string_view title;
  Tone tone;
};
constexpr std::array<Series, 4> all_series{{{"graft", "Graft", Tone::blue},
                                            {"eager", "PyTorch eager", Tone::plain},
                                            {"compiled", "torch.compile", Tone::amber},
                                            {"onnxruntime", "ONNX Runtime", Tone::green}}};

/// Returns a figure of Graft, if `series` is "graft", or of the peer with the name `series`. Returns nothing if it was
/// not measured.
Number figure_of(const CaseTimes& row, std::string_view series, Figure figure) {
  if (series == "graft") return (row.*figure).value_or(Number());
  const auto peer = row.peers.find(series);
  return peer == row.peers.end() ? Number() : (peer->second.*figure).value_or(Number());
}

/// Returns Graft and the peers that were timed in at least one row.
std::vector<Series> series_of(const std::vector<CaseTimes>& rows) {
  std::vector<Series> series;
  for (const Series& each : all_series) {
    const bool is_there = each.key == "graft" || std::any_of(rows.begin(), rows.end(), [&](const CaseTimes& row) {
                            return row.peers.contains(each.key);
                          });
    if (is_there) series.push_back(each);
  }
  return series;
}

std::string name_without_operator(const CaseTimes& row) {
  return row.name.starts_with(row.op + " ") ? row.name.substr(row.op.size() + 1) : row.name;
}

/// Splits the name of a case into its tensors and its attributes, such as "alpha=0.1", which follow the tensors.
std::pair<std::string, std::string> label_of(const CaseTimes& row) {
  const std::string name = name_without_operator(row);
  const std::size_t equals = name.find('=');
  const std::size_t space = equals == std::string::npos ? equals : name.rfind(' ', equals);
  if (space == std::string::npos) return {name, ""};
  return {name.substr(0, space), name.substr(space + 1)};
}

struct Chart {
  std::string title;
  std::string note;
  Figure figure;
  int digits;
  Number line;
  std::string line_title;
  std::function<bool(const CaseTimes&)> takes;
  std::function<Number(const CaseTimes&)> mark;
};

Number no_mark(const CaseTimes& /*row*/) { return {}; }

/// Returns the TFLOP/s of a large matrix product of this type, or nothing where it was not measured.
Number product_speed(const OperatorTimes& times, const std::string& type) {
  if (!times.matmul_tflop_s) return {};
  const auto found = times.matmul_tflop_s->find(type);
  return found == times.matmul_tflop_s->end() ? Number() : found->second;
}

/// Returns the TFLOP/s that the bandwidth of a copy and the speed of a large matrix product in the row's dtype allow,
/// or nothing if the bandwidth is not known.
Number attainable(const OperatorTimes& times, const CaseTimes& row) {
  if (!times.copy_gb_s) return {};
  constexpr double giga_per_tera = 1e3;
  const double by_memory = row.operations / static_cast<double>(row.bytes) * *times.copy_gb_s / giga_per_tera;
  return std::min(by_memory, product_speed(times, row.dtype).value_or(by_memory));
}

std::vector<Chart> charts_of(const OperatorTimes& times) {
  const bool on_gpu = times.is_on_gpu();
  const auto computes = [](const CaseTimes& row) { return row.operations != 0; };
  const auto is_small = [](const CaseTimes& row) { return row.warm_us.value_or(Number()).has_value(); };
  Chart arithmetic{
      .title = "Arithmetic, TFLOP/s",
      .note =
          on_gpu ? "The mark is the speed that the bandwidth of a copy and a large matrix multiplication allow." : "",
      .figure = &CaseTimes::tflop_s,
      .digits = on_gpu ? 0 : 3,
      .line = product_speed(times, "f16"),
      .line_title = "f16 matrix multiplication",
      .takes = computes,
      .mark = no_mark};
  if (!on_gpu) {
    Chart time{.title = "Time, microseconds",
               .note = "",
               .figure = &CaseTimes::us,
               .digits = 0,
               .line = {},
               .line_title = "",
               .takes = [=](const CaseTimes& row) { return !computes(row); },
               .mark = no_mark};
    return {std::move(time), std::move(arithmetic)};
  }
  arithmetic.mark = [&times](const CaseTimes& row) { return attainable(times, row); };
  Chart bandwidth{
      .title = "Bandwidth, as a fraction of a copy",
      .note = "The mark is the target.",
      .figure = &CaseTimes::of_copy,
      .digits = 2,
      .line = 1.0,
      .line_title = "copy",
      .takes = [=](const CaseTimes& row) { return !computes(row) && !is_small(row); },
      .mark = [](const CaseTimes& row) { return row.to_reach.of_copy > 0 ? Number(row.to_reach.of_copy) : Number(); }};
  Chart small{.title = "Small tensors with a warm cache, microseconds",
              .note = "",
              .figure = &CaseTimes::warm_us,
              .digits = 1,
              .line = times.empty_kernel_us,
              .line_title = "empty kernel",
              .takes = [=](const CaseTimes& row) { return !computes(row) && is_small(row); },
              .mark = no_mark};
  return {std::move(bandwidth), std::move(small), std::move(arithmetic)};
}

html::BarChart bars_of(const Chart& chart, const std::string& op, const std::vector<CaseTimes>& rows,
                       const std::vector<Series>& series) {
  html::BarChart bars{.title = fmt::format("{}: {}", op, chart.title),
                      .note = chart.note,
                      .digits = chart.digits,
                      .line = chart.line,
                      .line_title = chart.line_title,
                      .series = {},
                      .rows = {}};
  for (const Series& each : series) bars.series.push_back({std::string(each.title), each.tone});
  for (const CaseTimes& row : rows) {
    if (row.failed || !chart.takes(row)) continue;
    const auto [label, note] = label_of(row);
    html::BarChart::Row bar{
        .label = label, .note = note, .values = {}, .mark = chart.mark(row), .is_problem = !row.misses.empty()};
    for (const Series& each : series) bar.values.push_back(figure_of(row, each.key, chart.figure));
    bars.rows.push_back(std::move(bar));
  }
  return bars;
}

std::string kind_of(const CaseTimes& row) {
  if (row.failed) return failed;
  return row.misses.empty() ? good : short_of;
}

html::Table figures_of(const OperatorTimes& times, const std::vector<Series>& series) {
  html::Table table{
      .title = "All figures",
      .columns = {{"operator", Type::text}, {"case", Type::text}, {"verdict", Type::kind}, {"kernel", Type::code}}};
  constexpr std::array<std::pair<Figure, std::string_view>, 4> figures{{{&CaseTimes::us, "us"},
                                                                        {&CaseTimes::warm_us, "warm us"},
                                                                        {&CaseTimes::of_copy, "of copy"},
                                                                        {&CaseTimes::tflop_s, "TFLOP/s"}}};
  for (const Series& each : series) {
    for (const auto& [figure, title] : figures) {
      table.columns.push_back({fmt::format("{} {}", each.title, title), Type::number});
    }
  }
  table.columns.push_back({"difference", Type::number, "from PyTorch's result, relative to its norm"});
  table.columns.push_back({"falls short", Type::text});
  for (const CaseTimes& row : times.results) {
    std::vector<html::Cell> cells{row.op, name_without_operator(row), kind_of(row), row.variant.value_or("")};
    for (const Series& each : series) {
      for (const auto& [figure, title] : figures) cells.push_back(html::cell_of(figure_of(row, each.key, figure)));
    }
    cells.push_back(html::cell_of(row.difference));
    cells.emplace_back(row.failed ? *row.failed : fmt::format("{}", fmt::join(row.misses, "; ")));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

void add_facts(html::Report& page, const OperatorTimes& times) {
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) page.summary.push_back({name, text});
  };
  add("on", times.name);
  add("PyTorch", times.torch.value_or(""));
  add("ONNX Runtime", times.onnxruntime.value_or(""));
  for (const std::string& missing : times.missing.value_or(std::vector<std::string>())) {
    add("left out", missing + " is not installed");
  }
  if (times.copy_gb_s) add("bandwidth of a copy", fmt::format("{:.1f} GB/s", *times.copy_gb_s));
  if (times.empty_kernel_us) add("time of an empty kernel", fmt::format("{:.2f} us", *times.empty_kernel_us));
  if (times.threads) add("threads", fmt::format("{}", *times.threads));
  add("how",
      times.is_on_gpu()
          ? "median of 31 calls, each timed by itself with device events after 1 GiB of other data was read; with a "
            "warm cache: directly after the same call"
          : "Graft's bar is its reference kernel, which computes in double precision, for accuracy and not for speed");
}

}  // namespace

html::Report page_of_operators(const OperatorTimes& times) {
  html::Report page = new_report("bench", "Speed of the operators");
  add_facts(page, times);
  page.kinds = {
      {.key = good, .mark = "✓", .title = "good", .meaning = "reaches all targets", .tone = Tone::green},
      {.key = short_of, .mark = "!", .title = "falls short", .meaning = "of at least one target", .tone = Tone::amber},
      {.key = failed, .mark = "✕", .title = failed, .meaning = "did not run", .tone = Tone::red, .is_problem = true}};
  const std::vector<Series> series = series_of(times.results);
  std::vector<std::pair<std::string, std::vector<CaseTimes>>> operators;  // the order is the order of timing
  for (const CaseTimes& row : times.results) {
    auto same =
        std::find_if(operators.begin(), operators.end(), [&](const auto& each) { return each.first == row.op; });
    if (same == operators.end()) same = operators.insert(operators.end(), {row.op, {}});
    same->second.push_back(row);
  }
  for (auto& [name, own] : operators) {
    std::ranges::stable_sort(own, {}, &CaseTimes::index);
    for (const Chart& chart : charts_of(times)) {
      html::BarChart bars = bars_of(chart, name, own, series);
      if (!bars.rows.empty()) page.sections.emplace_back(std::move(bars));
    }
  }
  page.sections.emplace_back(figures_of(times, series));
  if (!times.left_out.empty()) {
    html::Table table{.title = "Not timed",
                      .note = "The time limit was reached before these cases.",
                      .columns = {{"case", Type::text}}};
    for (const std::string& name : times.left_out) table.rows.push_back({name});
    page.sections.emplace_back(std::move(table));
  }
  return page;
}

html::Report page_of_model(const report::ModelTimes& measured) {
  constexpr double milliseconds = 1e3;
  constexpr std::size_t bins = 12;
  html::Report page = new_model_report("bench", measured.model);
  const std::vector<double>& times = measured.seconds;
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  page.summary.push_back({"on", "the CPU"});
  for (const auto& [name, shape] : measured.shapes) {
    page.summary.push_back({"input", fmt::format("{}: {}", name, fmt::join(shape, "x"))});
  }
  page.summary.push_back(
      {"median", fmt::format("{:.3f} ms, {:.1f} runs per second", measured.median_ms(), measured.runs_a_second())});

  html::Histogram histogram{.title = "Time of a run", .axis = "milliseconds", .counted = "runs", .bins = {}};
  // Runs that another process slowed down have a bin of their own; otherwise all other runs could share one bin.
  constexpr double slowest_shown = 3;
  const double first = sorted.front() * milliseconds;
  const double last = std::min(sorted.back() * milliseconds, slowest_shown * measured.median_ms());
  const double size = std::max((last - first) / bins, 1e-9);
  for (std::size_t i = 0; i < bins; ++i) {
    const double from = first + static_cast<double>(i) * size;
    histogram.bins.push_back({fmt::format("{:.3f} to {:.3f}", from, from + size), 0, {}});
  }
  std::size_t slower = 0;
  for (const double time : sorted) {
    if (time * milliseconds > last) {
      ++slower;
      continue;
    }
    const auto bin = static_cast<std::size_t>((time * milliseconds - first) / size);
    ++histogram.bins[std::min(bin, bins - 1)].count;
  }
  if (slower != 0) histogram.bins.push_back({fmt::format("more than {:.3f}", last), slower, {}});
  page.sections.emplace_back(std::move(histogram));
  html::Table table{
      .title = "Runs", .columns = {{"run", Type::number}, {"milliseconds", Type::number}}, .is_folded = true};
  for (std::size_t i = 0; i < times.size(); ++i) {
    table.rows.push_back({static_cast<double>(i + 1), times[i] * milliseconds});
  }
  page.sections.emplace_back(std::move(table));
  return page;
}

}  // namespace graft::present
