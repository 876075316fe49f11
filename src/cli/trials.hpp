// Models that the real TensorRT is asked about, one after another, in a process that may die.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.hpp"
#include "cli/interrupts.hpp"
#include "cli/temporary_folder.hpp"
#include "engine/driver.hpp"
#include "graph/model.hpp"

namespace graft::cli {

enum class Outcome : std::uint8_t {
  accepted,
  refused,  ///< By the parser.
  failed,   ///< In the build.
  crashed,  ///< The process died.
  hung,     ///< No answer in time.
};

struct Trial {
  Outcome outcome = Outcome::accepted;
  nlohmann::json answer;      ///< The driver's: errors, messages, output, plugins.
  bool is_cut_short = false;  ///< It had a share of the time, and did not end in it.
  bool is_by_sizes = false;   ///< It failed for the sizes that were supposed of a part's inputs.
};

struct TrialOptions {
  std::vector<std::string> libraries;
  std::string tensorrt = "auto";
  std::vector<std::string> targets;
  bool plugin_override = false;
  double limit = 300;           ///< Seconds for one trial.
  std::size_t max_builds = 60;  ///< In all.
  double max_seconds = 300;     ///< In all, from the start on.
};

/// Thrown in the place of a trial that would be more than the budget allows.
struct BudgetSpent {
  std::string what;  ///< "the budget of 60 builds is spent"
};

class Trials {
 public:
  /// Starts TensorRT and loads the libraries. Throws EngineError where that fails.
  Trials(const Console& console, TrialOptions options);

  /// Which TensorRT it is.
  [[nodiscard]] const nlohmann::json& tensorrt() const { return ready_["tensorrt"]; }
  /// Of every plugin: name, version, namespace, generation, fields, and the library it is from ("": TensorRT's own).
  [[nodiscard]] const nlohmann::json& creators() const { return ready_["creators"]; }

  /// Whether the seconds of the budget are spent.
  [[nodiscard]] bool is_spent() const;
  /// These throw BudgetSpent; the first trial is always made.
  [[nodiscard]] Trial parse(const Model& model);
  /// `shapes` are NAME=MIN..OPT..MAX of the inputs with dynamic dimensions. Throws Error where one is missing. It may
  /// take `share` of the seconds that are left.
  [[nodiscard]] Trial build(const Model& model, const std::vector<std::string>& shapes, double share = 1.0);

  /// How many trials there were, how many processes they took, how long.
  [[nodiscard]] Json summary() const;
  /// "TensorRT-RTX 1.7.1.116 was asked in 3 parses and 5 builds, 2.1 s"
  [[nodiscard]] std::string summary_text() const;

 private:
  [[nodiscard]] double seconds() const;
  /// Of the whole budget.
  [[nodiscard]] BudgetSpent seconds_spent() const;
  [[nodiscard]] Trial ask(std::string_view action, const Model& model, const std::vector<std::string>& shapes,
                          double share);

  const Console& console_;
  TrialOptions options_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  DeferInterrupts defer_;
  TemporaryFolder folder_;
  Progress progress_;
  DriverSession session_;
  nlohmann::json ready_;
  std::size_t parses_ = 0;
  std::size_t builds_ = 0;
  int workers_ = 1;
};

}  // namespace graft::cli
