// Writes tables of times.
#include "present/text/bench_text.hpp"

#include <fmt/format.h>

#include <utility>

namespace graft::present {
namespace {

std::string figure(const nlohmann::json& object, const char* key, const char* form) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? "" : fmt::format(fmt::runtime(form), found->get<double>());
}

/// Adds a table that compares random problems with the fastest peer, operator by operator.
void add_random(Listing& text, const nlohmann::json& drawn) {
  if (drawn["operators"].empty()) return;  // no peer was timed
  text.add("");
  text.add(fmt::format("Speed relative to the fastest peer, for random problems of seed {}:", drawn["seed"].dump()));
  Table table;
  table.add({{"operator", Color::faint},
             {"cases", Color::faint},
             {"geometric mean", Color::faint},
             {"worst", Color::faint},
             {"below", Color::faint},
             {"worst case", Color::faint}});
  for (const auto& row : drawn["operators"]) {
    const bool reaches = row["reaches"].get<bool>();
    table.add({{row.value("operator", ""), reaches ? Color::none : Color::caution},
               row["cases"].dump(),
               fmt::format("{} of {}", figure(row, "geometric_mean", "{:.2f}"), figure(row, "mean_to_reach", "{:.2f}")),
               fmt::format("{} of {}", figure(row, "worst", "{:.2f}"), figure(row, "worst_to_reach", "{:.2f}")),
               row["below"].dump(),
               row.value("worst_case", "")});
  }
  text.add(std::move(table));
}

}  // namespace

Listing operators_text(const nlohmann::json& result) {
  Listing text;
  const bool on_gpu = result.value("device", "") == "cuda";
  std::string line = result.value("name", "");
  if (result.contains("torch")) line += ", PyTorch " + result.value("torch", "");
  if (result.contains("onnxruntime")) line += ", ONNX Runtime " + result.value("onnxruntime", "");
  line += fmt::format(", bandwidth of a copy {} GB/s", figure(result, "copy_gb_s", "{:.1f}"));
  if (on_gpu) line += fmt::format(", time of an empty kernel {} us", figure(result, "empty_kernel_us", "{:.2f}"));
  text.add(line);
  for (const auto& missing : result.value("missing", nlohmann::json::array())) {
    text.add(fmt::format("{} is not installed and therefore not timed", missing.get<std::string>()));
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
  for (const auto& row : result["results"]) {
    if (row.contains("failed")) {
      table.add({row.value("name", ""), {"failed", Color::bad}, "", "", "", "", row.value("failed", "")});
      continue;
    }
    std::string peers;
    for (const auto& [name, peer] : row["peers"].items()) {
      const std::string time = peer.contains("failed") ? "failed" : figure(peer, "us", "{:.1f}");
      peers += fmt::format("{}{} {}", peers.empty() ? "" : ", ", name, time);
    }
    table.add({{row.value("name", ""), row["misses"].empty() ? Color::none : Color::caution},
               row.value("variant", ""),
               figure(row, "us", "{:.1f}"),
               on_gpu ? figure(row, "warm_us", "{:.1f}") : "",
               figure(row, "of_copy", "{:.2f}"),
               figure(row, "tflop_s", on_gpu ? "{:.0f}" : "{:.3f}"),
               peers});
  }
  text.add(std::move(table));
  Table misses;
  for (const auto& row : result["results"]) {
    std::string missed;
    for (const auto& miss : row["misses"]) missed += (missed.empty() ? "" : "; ") + miss.get<std::string>();
    if (on_gpu && !missed.empty()) misses.add({row.value("name", ""), missed});
  }
  // Random problems are summarized by add_random, since a list of all their misses would be long.
  if (!misses.empty() && !result.contains("random")) {
    text.add("");
    text.add("Falls short of targets:");
    text.add(std::move(misses));
  }
  if (result.contains("random")) add_random(text, result["random"]);
  if (const std::size_t count = result["left_out"].size(); count != 0) {
    text.add("");
    text.add(fmt::format("{} not timed: the time limit was reached", count_text(count, "case")));
  }
  return text;
}

std::vector<std::string> operators_warnings(const nlohmann::json& result) {
  std::vector<std::string> warnings;
  for (const auto& name : result["wrong"]) {
    warnings.push_back(
        fmt::format("{}: the case failed, or its result differs from a peer's", name.get<std::string>()));
  }
  return warnings;
}

Json operators_json(nlohmann::json result) {
  result.erase("event");
  result.erase("command");
  return result;
}

std::string model_times_text(const report::ModelTimes& times) {
  return fmt::format("{}: {:.3f} ms on the CPU, {:.1f} runs per second ({}, fastest {:.3f} ms, slowest {:.3f} ms)",
                     times.model, times.median_ms(), times.runs_a_second(), count_text(times.runs(), "run"),
                     times.fastest_ms(), times.slowest_ms());
}

}  // namespace graft::present
