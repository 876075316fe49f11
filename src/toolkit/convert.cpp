// Conversion: the pipeline of passes on a copy.
#include "graft/toolkit/convert.hpp"

#include <fmt/format.h>

#include <utility>

#include "passes/pipeline.hpp"
#include "toolkit/access.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

PluginMode mode_of(Plugins plugins) {
  switch (plugins) {
    case Plugins::always: return PluginMode::always;
    case Plugins::never: return PluginMode::never;
    case Plugins::automatic: break;
  }
  return PluginMode::automatic;
}

OperatorChoice::Kind kind_of(graft::OperatorChoice::Kind kind) {
  switch (kind) {
    case graft::OperatorChoice::Kind::native: return OperatorChoice::Kind::native;
    case graft::OperatorChoice::Kind::function: return OperatorChoice::Kind::function;
    case graft::OperatorChoice::Kind::plugin: break;
  }
  return OperatorChoice::Kind::plugin;
}

std::vector<Rewrite> rewrites_of(std::vector<graft::Rewrite>&& found) {
  std::vector<Rewrite> rewrites;
  for (graft::Rewrite& rewrite : found) {
    rewrites.push_back({.pass = std::move(rewrite.pass),
                        .nodes = std::move(rewrite.replaced),
                        .replacement = std::move(rewrite.replacement),
                        .reason = std::move(rewrite.reason),
                        .proof = std::move(rewrite.proof)});
  }
  return rewrites;
}

std::vector<std::string> failures_of(const std::vector<RuleOutcome>& rules) {
  std::vector<std::string> failures;
  for (const RuleOutcome& rule : rules) {
    if (!rule.failed()) continue;
    std::string text =
        fmt::format("{}: {}: done in {} of {} places", rule.place, rule.rule, rule.applied, rule.matched);
    for (const std::string& note : rule.notes) text += "\n" + note;
    failures.push_back(std::move(text));
  }
  return failures;
}

}  // namespace

ConvertResult convert(const Model& model, const ConvertOptions& options) {
  Work work(options.watch);
  return work.run([&] {
    graft::ConvertOptions inner;
    inner.plugins = mode_of(options.plugins);
    inner.only = options.only;
    inner.without = options.without;
    inner.prove = options.prove;
    if (!options.rules.empty()) inner.rules = read_rules(options.rules);
    inner.progress = [&](std::string_view pass, std::size_t done, std::size_t total) {
      work.report(static_cast<double>(done) / static_cast<double>(total + 1), pass);
    };
    if (options.prove && !work.engine().can_run()) static_cast<void>(work.engine().compile(model_of(model)));
    graft::Model converted = model_of(model).clone();
    ConvertReport report = graft::convert(work.engine(), converted, inner);
    ConvertResult result;
    result.warnings = std::move(report.warnings);
    for (std::string& warning : frozen_size_warnings(ModelAccess::frozen_sizes_of(model), report)) {
      result.warnings.push_back(std::move(warning));
    }
    result.failed_rules = failures_of(report.rules);
    result.proofs_run = report.proofs_run;
    for (graft::OperatorChoice& choice : report.choices) {
      result.choices.push_back({.node = std::move(choice.node),
                                .op = std::move(choice.op),
                                .kind = kind_of(choice.kind),
                                .reason = std::move(choice.reason)});
    }
    result.rewrites = rewrites_of(std::move(report.rewrites));
    result.rejected = rewrites_of(std::move(report.undone));
    result.model = ModelAccess::make(std::move(converted));
    return result;
  });
}

}  // namespace graft::toolkit
