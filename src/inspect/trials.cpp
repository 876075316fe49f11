// Writes each model to a file for the engine driver's command `trials`.
#include "inspect/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/engine_session.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "inspect/tensorrt_support.hpp"
#include "onnx/onnx_io.hpp"

namespace graft::inspect {
namespace {

std::vector<std::string> driver_command(const TrialOptions& options) {
  std::vector<std::string> command{"trials", "--tensorrt", options.tensorrt};
  for (const std::string& target : options.targets) command.push_back("--target=" + target);
  if (options.plugin_override) command.emplace_back("--plugin-override");
  return command;
}

Outcome outcome_of(const std::string& word) {
  if (word == "accepted") return Outcome::accepted;
  if (word == "refused") return Outcome::refused;
  if (word == "failed") return Outcome::failed;
  if (word == "crashed") return Outcome::crashed;
  return Outcome::hung;
}

/// Returns a text for messages with the reason in each hint of hint_on_refusal() on a node of the model, for example on
/// a TopK whose K is not a constant. Returns an empty string if there are no hints.
std::string open_counts(const onnx::Model& model) {
  std::string text;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (const auto hint = hint_on_refusal(node)) text += fmt::format("; {}: {}", onnx::describe(node), hint->reason);
  });
  return text;
}

}  // namespace

DriverTrials::DriverTrials(TrialOptions options, std::function<bool()> should_stop)
    : options_(std::move(options)),
      session_(engine::find_engine_driver(), driver_command(options_),
               {.on_progress = {}, .on_log = {}, .should_stop = std::move(should_stop)}) {}

void DriverTrials::load(const std::vector<std::string>& libraries, TrialCallbacks callbacks) {
  callbacks_ = std::move(callbacks);
  started_ = std::chrono::steady_clock::now();
  folder_.emplace();
  if (callbacks_.on_start) callbacks_.on_start({.action = "load TensorRT", .outcome = {}});
  ready_ = session_.ask({{"action", "start"}, {"plugin_libraries", libraries}, {"limit", options_.limit}});
}

TensorRTIdentity DriverTrials::tensorrt() const { return engine::tensorrt_in(ready_); }

double DriverTrials::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

bool DriverTrials::is_spent() const { return seconds() >= options_.max_seconds; }

BudgetSpent DriverTrials::seconds_spent() const {
  return {fmt::format("the budget of {:g} s is spent ({})", options_.max_seconds, setting_name(Setting::max_seconds))};
}

Trial DriverTrials::parse(const onnx::Model& model) {
  if (parses_ > 0 && is_spent()) throw seconds_spent();
  ++parses_;
  return ask("parse", model, {}, 1.0);
}

Trial DriverTrials::build(const onnx::Model& model, const BuildRanges& ranges, double share) {
  if (builds_ >= options_.max_builds) {
    throw BudgetSpent{fmt::format("the budget of {} build{} is spent ({})", options_.max_builds,
                                  options_.max_builds == 1 ? "" : "s", setting_name(Setting::max_builds))};
  }
  if (is_spent()) throw seconds_spent();
  ++builds_;
  Trial trial = ask("build", model, ranges, share);
  if (trial.outcome == Outcome::refused) {  // the parser refused the model, so the trial counts as a parse
    --builds_;
    ++parses_;
  }
  return trial;
}

Trial DriverTrials::ask(std::string_view action, const onnx::Model& model, const BuildRanges& ranges, double share) {
  const auto number = static_cast<double>(parses_ + builds_);
  TrialProgress progress{.action = action,
                         .number = action == "build" ? builds_ : parses_,
                         .nodes = model.graph().node_count(),
                         .fraction = number / (number + 2),  // the number of further trials is unknown
                         .outcome = {}};
  if (callbacks_.on_start) callbacks_.on_start(progress);
  const std::string file = (folder_->path() / "model.onnx").string();
  onnx::write_onnx(model, file);
  // The first parse has all the time that one may take. No other trial goes far beyond the budget.
  const bool is_first = action == "parse" && parses_ == 1;
  const double left = is_first ? options_.limit : std::max(1.0, (options_.max_seconds - seconds()) * share);
  const double limit = std::min(options_.limit, left);
  nlohmann::json question = {{"action", action}, {"model", file}, {"shapes", ranges.given}, {"limit", limit}};
  if (ranges.suggested) {
    question["strict"] = ranges.is_strict;
    nlohmann::json& suggested = question["suggested"] = nlohmann::json::object();
    for (const auto& [name, range] : *ranges.suggested) {
      suggested[name] = {{"sizes", range.sizes}, {"values", range.values}};
    }
  }
  nlohmann::json answer = session_.ask(question);
  const std::string outcome = answer.value("outcome", "");
  workers_ = answer.value("workers", workers_);
  progress.outcome = outcome;
  progress.seconds = answer.value("seconds", 0.0);
  if (callbacks_.on_end) callbacks_.on_end(progress);
  if (outcome == "shapes" && ranges.suggested) {
    answer["messages"].push_back({{"severity", "error"}, {"message", answer.value("message", "")}});
    return {.outcome = Outcome::failed, .answer = std::move(answer), .is_by_sizes = true};
  }
  if (outcome == "shapes") {
    const std::string how =
        answer.value("values", false)
            ? answer.value("next_step", "")
            : fmt::format("Set them with {} NAME=MIN..OPT..MAX, or one size with {} NAME:1x3x224x224",
                          setting_name(Setting::shape_ranges), setting_name(Setting::input_shapes));
    throw Error(fmt::format("{}{}\n{}", answer.value("message", ""), open_counts(model), how));
  }
  const bool is_cut_short = outcome_of(outcome) == Outcome::hung && limit < options_.limit;
  if (is_cut_short && (share == 1.0 || is_spent())) throw seconds_spent();
  return {outcome_of(outcome), std::move(answer), is_cut_short, false};
}

TrialCounts DriverTrials::summary() const {
  return {.parses = parses_, .builds = builds_, .processes = workers_, .seconds = seconds()};
}

}  // namespace graft::inspect
