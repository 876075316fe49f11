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
using nlohmann::json;
using Type = html::Column::Type;
using Number = std::optional<double>;

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

Number number_of(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? Number() : Number(found->get<double>());
}

std::string text_of(const json& object, const char* key) { return object.value(key, std::string()); }

std::string joined(const json& texts) {
  return fmt::format("{}", fmt::join(texts.get<std::vector<std::string>>(), "; "));
}

/// Returns a figure of Graft or of a peer, or nothing if it was not measured.
Number figure_of(const json& row, std::string_view series, std::string_view figure) {
  if (series == "graft") return number_of(row, figure);
  const auto peer = row["peers"].find(series);
  return peer == row["peers"].end() ? Number() : number_of(*peer, figure);
}

/// Returns Graft and the peers that were timed in at least one row.
std::vector<Series> series_of(const json& rows) {
  std::vector<Series> series;
  for (const Series& each : all_series) {
    const bool is_there = each.key == "graft" || std::any_of(rows.begin(), rows.end(), [&](const json& row) {
                            return row["peers"].contains(each.key);
                          });
    if (is_there) series.push_back(each);
  }
  return series;
}

std::string name_without_operator(const json& row) {
  const std::string name = text_of(row, "name");
  const std::string op = text_of(row, "operator");
  return name.starts_with(op + " ") ? name.substr(op.size() + 1) : name;
}

/// Splits the name of a case into its tensors and its attributes, such as "alpha=0.1", which follow the tensors.
std::pair<std::string, std::string> label_of(const json& row) {
  const std::string name = name_without_operator(row);
  const std::size_t equals = name.find('=');
  const std::size_t space = equals == std::string::npos ? equals : name.rfind(' ', equals);
  if (space == std::string::npos) return {name, ""};
  return {name.substr(0, space), name.substr(space + 1)};
}

struct Chart {
  std::string title;
  std::string note;
  std::string_view figure;
  int digits;
  Number line;
  std::string line_title;
  std::function<bool(const json&)> takes;
  std::function<Number(const json&)> mark;
};

Number no_mark(const json& /*row*/) { return {}; }

/// Returns the TFLOP/s that the bandwidth of a copy and the speed of a large matrix product in the row's dtype allow,
/// or nothing if the bandwidth, the operations or the bytes are not known.
Number attainable(const json& result, const json& row) {
  const Number operations = number_of(row, "operations");
  const Number bytes = number_of(row, "bytes");
  const Number copy = number_of(result, "copy_gb_s");
  if (!operations || !bytes || !copy) return {};
  constexpr double giga_per_tera = 1e3;
  const double by_memory = *operations / *bytes * *copy / giga_per_tera;
  const json products = result.value("matmul_tflop_s", json::object());
  return std::min(by_memory, number_of(products, text_of(row, "dtype")).value_or(by_memory));
}

std::vector<Chart> charts_of(const json& result) {
  const bool on_gpu = text_of(result, "device") == "cuda";
  const auto computes = [](const json& row) { return number_of(row, "operations").value_or(0) != 0; };
  const auto is_small = [](const json& row) { return number_of(row, "warm_us").has_value(); };
  const json products = result.value("matmul_tflop_s", json::object());
  Chart arithmetic{
      .title = "Arithmetic, TFLOP/s",
      .note = on_gpu ? "The mark is the speed that the bandwidth of a copy and a large matrix product allow." : "",
      .figure = "tflop_s",
      .digits = on_gpu ? 0 : 3,
      .line = number_of(products, "f16"),
      .line_title = "f16 matrix product",
      .takes = computes,
      .mark = no_mark};
  if (!on_gpu) {
    Chart time{.title = "Time, microseconds",
               .note = "",
               .figure = "us",
               .digits = 0,
               .line = {},
               .line_title = "",
               .takes = [=](const json& row) { return !computes(row); },
               .mark = no_mark};
    return {std::move(time), std::move(arithmetic)};
  }
  arithmetic.mark = [&result](const json& row) { return attainable(result, row); };
  Chart bandwidth{.title = "Bandwidth, as a fraction of a copy",
                  .note = "The mark is the target.",
                  .figure = "of_copy",
                  .digits = 2,
                  .line = 1.0,
                  .line_title = "copy",
                  .takes = [=](const json& row) { return !computes(row) && !is_small(row); },
                  .mark =
                      [](const json& row) {
                        const Number wanted = number_of(row["to_reach"], "of_copy");
                        return wanted && *wanted > 0 ? wanted : Number();
                      }};
  Chart small{.title = "Small tensors with a warm cache, microseconds",
              .note = "",
              .figure = "warm_us",
              .digits = 1,
              .line = number_of(result, "empty_kernel_us"),
              .line_title = "empty kernel",
              .takes = [=](const json& row) { return !computes(row) && is_small(row); },
              .mark = no_mark};
  return {std::move(bandwidth), std::move(small), std::move(arithmetic)};
}

html::BarChart bars_of(const Chart& chart, const std::string& op, const std::vector<json>& rows,
                       const std::vector<Series>& series) {
  html::BarChart bars{.title = fmt::format("{}: {}", op, chart.title),
                      .note = chart.note,
                      .digits = chart.digits,
                      .line = chart.line,
                      .line_title = chart.line_title,
                      .series = {},
                      .rows = {}};
  for (const Series& each : series) bars.series.push_back({std::string(each.title), each.tone});
  for (const json& row : rows) {
    if (row.contains("failed") || !chart.takes(row)) continue;
    const auto [label, note] = label_of(row);
    html::BarChart::Row bar{
        .label = label, .note = note, .values = {}, .mark = chart.mark(row), .is_problem = !row["misses"].empty()};
    for (const Series& each : series) bar.values.push_back(figure_of(row, each.key, chart.figure));
    bars.rows.push_back(std::move(bar));
  }
  return bars;
}

std::string kind_of(const json& row) {
  if (row.contains("failed")) return failed;
  return row["misses"].empty() ? good : short_of;
}

html::Table figures_of(const json& result, const std::vector<Series>& series) {
  html::Table table{
      .title = "All figures",
      .columns = {{"operator", Type::text}, {"case", Type::text}, {"verdict", Type::kind}, {"kernel", Type::code}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> figures{
      {{"us", "us"}, {"warm_us", "warm us"}, {"of_copy", "of copy"}, {"tflop_s", "TFLOP/s"}}};
  for (const Series& each : series) {
    for (const auto& [key, title] : figures) {
      table.columns.push_back({fmt::format("{} {}", each.title, title), Type::number});
    }
  }
  table.columns.push_back({"difference", Type::number, "from PyTorch's result, relative to its norm"});
  table.columns.push_back({"falls short", Type::text});
  for (const json& row : result["results"]) {
    std::vector<html::Cell> cells{text_of(row, "operator"), name_without_operator(row), kind_of(row),
                                  text_of(row, "variant")};
    for (const Series& each : series) {
      for (const auto& [key, title] : figures) cells.push_back(html::cell_of(figure_of(row, each.key, key)));
    }
    cells.push_back(html::cell_of(number_of(row, "difference")));
    cells.emplace_back(row.contains("failed") ? text_of(row, "failed") : joined(row["misses"]));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

void add_facts(html::Report& page, const json& result) {
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) page.summary.push_back({name, text});
  };
  add("on", text_of(result, "name"));
  add("PyTorch", text_of(result, "torch"));
  add("ONNX Runtime", text_of(result, "onnxruntime"));
  for (const json& missing : result.value("missing", json::array())) {
    add("left out", missing.get<std::string>() + " is not installed");
  }
  if (const Number copy = number_of(result, "copy_gb_s")) add("bandwidth of a copy", fmt::format("{:.1f} GB/s", *copy));
  if (const Number empty = number_of(result, "empty_kernel_us")) {
    add("time of an empty kernel", fmt::format("{:.2f} us", *empty));
  }
  if (const Number threads = number_of(result, "threads")) add("threads", fmt::format("{:.0f}", *threads));
  add("how",
      text_of(result, "device") == "cuda"
          ? "median of 31 calls, each timed by itself with device events after 1 GiB of other data was read; with a "
            "warm cache: directly after the same call"
          : "Graft's bar is its reference kernel, which computes in double precision, for accuracy and not for speed");
}

}  // namespace

html::Report page_of_operators(const json& result) {
  html::Report page = new_report("bench", "Speed of the operators");
  add_facts(page, result);
  page.kinds = {
      {.key = good, .mark = "✓", .title = "good", .meaning = "reaches all targets", .tone = Tone::green},
      {.key = short_of, .mark = "!", .title = "falls short", .meaning = "of at least one target", .tone = Tone::amber},
      {.key = failed, .mark = "✕", .title = failed, .meaning = "did not run", .tone = Tone::red, .is_problem = true}};
  const json& rows = result["results"];
  const std::vector<Series> series = series_of(rows);
  std::vector<std::pair<std::string, std::vector<json>>> operators;  // in the order in which they were timed
  for (const json& row : rows) {
    const std::string name = text_of(row, "operator");
    auto same = std::find_if(operators.begin(), operators.end(), [&](const auto& each) { return each.first == name; });
    if (same == operators.end()) same = operators.insert(operators.end(), {name, {}});
    same->second.push_back(row);
  }
  for (auto& [name, own] : operators) {
    std::stable_sort(own.begin(), own.end(), [](const json& a, const json& b) { return a["index"] < b["index"]; });
    for (const Chart& chart : charts_of(result)) {
      html::BarChart bars = bars_of(chart, name, own, series);
      if (!bars.rows.empty()) page.sections.emplace_back(std::move(bars));
    }
  }
  page.sections.emplace_back(figures_of(result, series));
  if (const json& left_out = result["left_out"]; !left_out.empty()) {
    html::Table table{.title = "Not timed",
                      .note = "The time limit was reached before these cases.",
                      .columns = {{"case", Type::text}}};
    for (const json& name : left_out) table.rows.push_back({name.get<std::string>()});
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
