// Writes each model to a file for the engine driver's command `trials`.
#include "cli/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/engine_session.hpp"
#include "cli/tensorrt_support.hpp"
#include "graft/error.hpp"
#include "graph/onnx_io.hpp"

namespace graft::cli {
namespace {

std::vector<std::string> driver_command(const TrialOptions& options) {
  std::vector<std::string> command{"trials", "--tensorrt", options.tensorrt};
  for (const std::string& library : options.libraries) command.insert(command.end(), {"--plugin-library", library});
  for (const std::string& target : options.targets) command.insert(command.end(), {"--target", target});
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

/// The TopK whose number of results is no constant, which is why TensorRT asks for values.
std::string open_counts(const Model& model) {
  std::string text;
  model.graph().for_each_node([&](const Node& node) {
    if (const auto hint = hint_on_refusal(node)) text += fmt::format("; {}: {}", describe(node), hint->reason);
  });
  return text;
}

}  // namespace

Trials::Trials(const Console& console, TrialOptions options)
    : console_(console),
      options_(std::move(options)),
      progress_(console),
      session_(find_engine_driver(), driver_command(options_),
               {.on_progress = {}, .on_log = {}, .should_stop = interrupted}) {
  progress_.update("load TensorRT", 0);
  try {
    ready_ = session_.ask({{"action", "start"}, {"limit", options_.limit}});
  } catch (const EngineError& error) {
    progress_.clear();
    throw with_options_of_this_program(error);
  }
}

double Trials::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

bool Trials::is_spent() const { return seconds() >= options_.max_seconds; }

BudgetSpent Trials::seconds_spent() const {
  return {fmt::format("the budget of {:g} s is spent (--max-seconds)", options_.max_seconds)};
}

Trial Trials::parse(const Model& model) {
  if (parses_ > 0 && is_spent()) throw seconds_spent();
  ++parses_;
  return ask("parse", model, {}, 1.0);
}

Trial Trials::build(const Model& model, const std::vector<std::string>& shapes, double share) {
  if (builds_ >= options_.max_builds) {
    throw BudgetSpent{
        fmt::format("the budget of {} is spent (--max-builds)", count_text(options_.max_builds, "build"))};
  }
  if (is_spent()) throw seconds_spent();
  ++builds_;
  return ask("build", model, shapes, share);
}

Trial Trials::ask(std::string_view action, const Model& model, const std::vector<std::string>& shapes, double share) {
  const auto number = static_cast<double>(parses_ + builds_);
  progress_.update(fmt::format("{} number {}: {}", action, action == "build" ? builds_ : parses_,
                               count_text(model.graph().node_count(), "node")),
                   number / (number + 2));  // how many more there will be, nobody knows
  const std::string file = (folder_.path() / "model.onnx").string();
  write_onnx(model, file);
  // The first trial has all the time that one may take; of the others none goes far beyond the budget.
  const bool is_first = parses_ + builds_ == 1;
  const double left = is_first ? options_.limit : std::max(1.0, (options_.max_seconds - seconds()) * share);
  const double limit = std::min(options_.limit, left);
  nlohmann::json answer = session_.ask({{"action", action}, {"model", file}, {"shapes", shapes}, {"limit", limit}});
  progress_.clear();
  const std::string outcome = answer.value("outcome", "");
  workers_ = answer.value("workers", workers_);
  console_.detail(fmt::format("{} of {}: {}, {:.2f} s", action, count_text(model.graph().node_count(), "node"), outcome,
                              answer.value("seconds", 0.0)));
  if (outcome == "shapes") {
    const std::string how =
        answer.value("values", false)
            ? answer.value("next_step", "")
            : "Give them with --shapes NAME=MIN..OPT..MAX, or one size with --input NAME:1x3x224x224";
    throw Error(fmt::format("{}{}\n{}", answer.value("message", ""), open_counts(model), how));
  }
  const bool is_cut_short = outcome_of(outcome) == Outcome::hung && limit < options_.limit;
  if (is_cut_short && (share == 1.0 || is_spent())) throw seconds_spent();
  return {outcome_of(outcome), std::move(answer), is_cut_short, false};
}

Json Trials::summary() const {
  return {{"parses", parses_}, {"builds", builds_}, {"processes", workers_}, {"seconds", seconds()}};
}

std::string Trials::summary_text() const {
  return fmt::format("{} was asked: {}, {}, {}, {:.1f} s", tensorrt_text(ready_["tensorrt"]),
                     count_text(parses_, "parse"), count_text(builds_, "build"),
                     count_text(static_cast<std::size_t>(workers_), "process", "processes"), seconds());
}

}  // namespace graft::cli
