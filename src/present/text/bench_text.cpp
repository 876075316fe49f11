// Writes tables of times.
#include "present/text/bench_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

namespace graft::present {
namespace {

std::string figure(const std::optional<double>& value, const char* form) {
  return value ? fmt::format(fmt::runtime(form), *value) : "";
}
std::string figure(const report::PeerTimes::Figure& value, const char* form) {
  return value ? figure(*value, form) : "";
}

/// Adds a table that compares random problems with the fastest peer, operator by operator.
void add_random(Listing& text, const report::RandomTimes& random) {
  if (random.operators.empty()) return;  // no peer was timed
  text.add("");
  text.add(fmt::format("Speed relative to the fastest peer, for random problems of seed {}:", random.seed));
  Table table;
  table.add({{"operator", Color::faint},
             {"cases", Color::faint},
             {"geometric mean", Color::faint},
             {"worst", Color::faint},
             {"below", Color::faint},
             {"worst case", Color::faint}});
  for (const report::RandomSpeed& speed : random.operators) {
    table.add({{speed.op, speed.reaches ? Color::none : Color::caution},
               fmt::format("{}", speed.cases),
               fmt::format("{:.2f} of {:.2f}", speed.geometric_mean, speed.mean_to_reach),
               fmt::format("{:.2f} of {:.2f}", speed.worst, speed.worst_to_reach),
               fmt::format("{}", speed.below),
               speed.worst_case});
  }
  text.add(std::move(table));
}

}  // namespace

Listing operators_text(const report::OperatorTimes& times) {
  Listing text;
  const bool on_gpu = times.is_on_gpu();
  std::string line = times.name;
  if (times.torch) line += ", PyTorch " + *times.torch;
  if (times.onnxruntime) line += ", ONNX Runtime " + *times.onnxruntime;
  line += fmt::format(", bandwidth of a copy {} GB/s", figure(times.copy_gb_s, "{:.1f}"));
  if (on_gpu) line += fmt::format(", time of an empty kernel {} us", figure(times.empty_kernel_us, "{:.2f}"));
  text.add(line);
  for (const std::string& missing : times.missing.value_or(std::vector<std::string>())) {
    text.add(fmt::format("{} is not installed and therefore not timed", missing));
  }
  text.add("");
  Table table;
  table.add({{"case", Color::faint},
             {"kernel", Color::faint},
             {"us", Color::faint},
             {"warm us", Color::faint},
             {"of copy", Color::faint},
             {"TFLOP/s", Color::faint},
             {"peers, us", Color::faint}});
  for (const report::CaseTimes& row : times.results) {
    if (row.failed) {
      table.add({row.name, {"failed", Color::bad}, "", "", "", "", *row.failed});
      continue;
    }
    std::string peers;
    for (const auto& [name, peer] : row.peers) {
      peers +=
          fmt::format("{}{} {}", peers.empty() ? "" : ", ", name, peer.failed ? "failed" : figure(peer.us, "{:.1f}"));
    }
    table.add({{row.name, row.misses.empty() ? Color::none : Color::caution},
               row.variant.value_or(""),
               figure(row.us, "{:.1f}"),
               on_gpu ? figure(row.warm_us, "{:.1f}") : "",
               figure(row.of_copy, "{:.2f}"),
               figure(row.tflop_s, on_gpu ? "{:.0f}" : "{:.3f}"),
               peers});
  }
  text.add(std::move(table));
  Table misses;
  for (const report::CaseTimes& row : times.results) {
    if (on_gpu && !row.misses.empty()) misses.add({row.name, fmt::format("{}", fmt::join(row.misses, "; "))});
  }
  // Random problems are summarized by add_random, since a list of all their misses would be long.
  if (!misses.empty() && !times.random) {
    text.add("");
    text.add("Falls short of targets:");
    text.add(std::move(misses));
  }
  if (times.random) add_random(text, *times.random);
  if (const std::size_t count = times.left_out.size(); count != 0) {
    text.add("");
    text.add(fmt::format("{} not timed: the time limit was reached", count_text(count, "case")));
  }
  return text;
}

std::vector<std::string> operators_warnings(const report::OperatorTimes& times) {
  std::vector<std::string> warnings;
  for (const std::string& name : times.wrong) {
    warnings.push_back(fmt::format("{}: the case failed, or its result differs from a peer's", name));
  }
  return warnings;
}

std::string model_times_text(const report::ModelTimes& times) {
  return fmt::format("{}: {:.3f} ms on the CPU, {:.1f} runs per second ({}, fastest {:.3f} ms, slowest {:.3f} ms)",
                     times.model, times.median_ms(), times.runs_a_second(), count_text(times.runs(), "run"),
                     times.fastest_ms(), times.slowest_ms());
}

}  // namespace graft::present
