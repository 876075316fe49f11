// Runs the real TensorRT on one model after another, in a process that may die.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/driver.hpp"
#include "graft/report/inspect.hpp"
#include "onnx/model.hpp"
#include "onnx/temporary_folder.hpp"

namespace graft::inspect {

using report::TensorRTIdentity;
using report::TrialCounts;
using report::TrialProgress;

enum class Outcome : std::uint8_t {
  accepted,
  refused,  ///< The parser reported errors.
  failed,   ///< The parser accepted the model, and the build failed.
  crashed,  ///< The process ended without a result.
  hung,     ///< TensorRT did not finish within the time limit.
};

struct Trial {
  Outcome outcome = Outcome::accepted;
  nlohmann::json answer;      ///< The result from the driver: errors, messages, output, plugins.
  bool is_cut_short = false;  ///< Whether the trial had only a share of the time and did not end within it.
  bool is_by_sizes = false;   ///< Whether it failed because of the sizes that were assumed or suggested for its inputs.
};

struct TrialOptions {
  std::vector<std::string> libraries;  ///< Plugin libraries to load.
  std::string tensorrt = "auto";
  std::vector<std::string> targets;
  bool plugin_override = false;
  double limit = 300;           ///< Maximum time of one trial in seconds.
  std::size_t max_builds = 60;  ///< Maximum number of builds.
  double max_seconds = 120;     ///< Maximum time of all trials in seconds, from the start of DriverTrials on.
};

/// The optimization profile that is suggested for an input for which the user gave none.
struct SuggestedRange {
  std::string sizes;           ///< MIN..OPT..MAX of the dimensions; empty if none is dynamic.
  std::string values;          ///< MIN..OPT..MAX of the elements; empty if TensorRT cannot compute sizes from them.
  bool decides_sizes = false;  ///< Whether a node computes a size from the elements, so that a build needs `values`.
  bool is_computable = true;   ///< Whether shape inference accepts the optimum sizes of all inputs together.
  friend bool operator==(const SuggestedRange& a, const SuggestedRange& b) = default;
};

/// The optimization profiles with which an engine is built.
struct BuildRanges {
  std::vector<std::string> given;  ///< NAME=MIN..OPT..MAX for each input.
  /// Suggested ranges, by input name, for inputs that are not in `given`. If not set, a missing range is an Error.
  std::optional<std::map<std::string, SuggestedRange>> suggested = {};
  /// Whether a range that TensorRT reports as wrong makes the trial fail even if the model builds, as in `graft build`.
  /// Only used if `suggested` is set.
  bool is_strict = false;
};

/// Thrown instead of a trial if the budget of builds or of time is used up, and after a trial that used up the time.
struct BudgetSpent {
  std::string what;  ///< The reason, such as "the budget of 60 builds is spent".
};

/// Parses and builds models with TensorRT, one trial at a time within a budget. Tests implement the interface without
/// TensorRT.
class Trials {
 public:
  Trials() = default;
  virtual ~Trials() = default;
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  /// Returns all registered plugin creators as a JSON list: name, version, namespace, generation, fields, and library
  /// ("" for TensorRT's own).
  [[nodiscard]] virtual const nlohmann::json& creators() const = 0;
  /// Returns whether the time budget is used up.
  [[nodiscard]] virtual bool is_spent() const = 0;
  /// Parses a model with TensorRT's parser. Throws BudgetSpent if the time is used up, except in the first call.
  [[nodiscard]] virtual Trial parse(const onnx::Model& model) = 0;
  /// Parses and builds a model within the fraction `share` of the remaining time. Throws BudgetSpent if the builds or
  /// the time are used up. If a range is missing or does not fit the model, the trial fails with `is_by_sizes` if
  /// ranges are suggested; otherwise throws Error.
  [[nodiscard]] virtual Trial build(const onnx::Model& model, const BuildRanges& ranges, double share) = 0;
};

struct TrialCallbacks {
  std::function<void(const TrialProgress&)> on_start;
  std::function<void(const TrialProgress&)> on_end;
};

/// Runs trials with the installed TensorRT, in a process of the engine driver.
class DriverTrials final : public Trials {
 public:
  /// Starts a process that loads TensorRT, and returns without waiting for it. `should_stop` is polled: if it returns
  /// true, the process is stopped and the waiting call throws Interrupted. Throws Error (missing_tool) if the driver is
  /// not found.
  DriverTrials(TrialOptions options, std::function<bool()> should_stop);

  /// Loads TensorRT and the plugin libraries `libraries`. The time budget starts with this call, which must be the
  /// first on the object and made once. `callbacks` are called before and after each trial unless they are empty.
  /// Throws EngineError if TensorRT or a library cannot be loaded.
  void load(const std::vector<std::string>& libraries, TrialCallbacks callbacks);

  [[nodiscard]] TensorRTIdentity tensorrt() const;
  [[nodiscard]] const nlohmann::json& creators() const override { return ready_["creators"]; }
  [[nodiscard]] bool is_spent() const override;
  [[nodiscard]] Trial parse(const onnx::Model& model) override;
  [[nodiscard]] Trial build(const onnx::Model& model, const BuildRanges& ranges, double share) override;

  [[nodiscard]] TrialCounts summary() const;

 private:
  [[nodiscard]] double seconds() const;
  /// Returns the BudgetSpent to throw if the time budget is used up.
  [[nodiscard]] BudgetSpent seconds_spent() const;
  [[nodiscard]] Trial ask(std::string_view action, const onnx::Model& model, const BuildRanges& ranges, double share);

  TrialOptions options_;
  TrialCallbacks callbacks_;
  std::chrono::steady_clock::time_point started_;
  std::optional<onnx::TemporaryFolder> folder_;  ///< Holds the model of the trial.
  engine::DriverSession session_;
  nlohmann::json ready_;
  std::size_t parses_ = 0;
  std::size_t builds_ = 0;
  std::size_t workers_ = 1;
};

}  // namespace graft::inspect
