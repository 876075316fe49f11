// Models that the real TensorRT is asked about, one after another, in a process that may die.
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
#include "onnx/model.hpp"
#include "onnx/temporary_folder.hpp"

namespace graft::inspect {

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
  std::vector<std::string> libraries;  ///< Plugin libraries to load.
  std::string tensorrt = "auto";
  std::vector<std::string> targets;
  bool plugin_override = false;
  double limit = 300;           ///< Seconds for one trial.
  std::size_t max_builds = 60;  ///< In all.
  double max_seconds = 120;     ///< In all, from the start on.
};

/// What an input may be given where nobody said it.
struct SuggestedRange {
  std::string sizes;   ///< MIN..OPT..MAX of its dimensions; empty where none is dynamic.
  std::string values;  ///< MIN..OPT..MAX of its elements, where TensorRT computes sizes from them.
  friend bool operator==(const SuggestedRange& a, const SuggestedRange& b) = default;
};

/// The sizes, or values, that a build is for.
struct BuildRanges {
  std::vector<std::string> given;  ///< NAME=MIN..OPT..MAX
  /// For inputs that `given` leaves out; nothing: a missing range is the caller's error.
  std::optional<std::map<std::string, SuggestedRange>> suggested = {};
  /// With suggestions: a range that TensorRT complains of is a failure even where it builds, as for `graft build`.
  bool is_strict = false;
};

/// Thrown in the place of a trial that would be more than the budget allows.
struct BudgetSpent {
  std::string what;  ///< "the budget of 60 builds is spent"
};

/// What answers a probe: TensorRT, or a stand-in of it.
class Trials {
 public:
  Trials() = default;
  virtual ~Trials() = default;
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  /// Of every plugin: name, version, namespace, generation, fields, and the library it is from ("": TensorRT's own).
  [[nodiscard]] virtual const nlohmann::json& creators() const = 0;
  /// Whether the seconds of the budget are spent.
  [[nodiscard]] virtual bool is_spent() const = 0;
  /// These throw BudgetSpent; the first trial is always made.
  [[nodiscard]] virtual Trial parse(const onnx::Model& model) = 0;
  /// Throws Error where a range is missing and none is suggested; a range that the model does not take is a failure by
  /// sizes where ranges are suggested, and an Error otherwise. It may take `share` of the seconds that are left.
  [[nodiscard]] virtual Trial build(const onnx::Model& model, const BuildRanges& ranges, double share) = 0;
};

/// The progress of one trial.
struct TrialProgress {
  std::string_view action;   ///< "parse" or "build"; "load TensorRT" before the first.
  std::size_t number = 0;    ///< Of that action, from 1; 0 while TensorRT is loaded.
  std::size_t nodes = 0;     ///< Of the model.
  double fraction = 0;       ///< A guess, as the number of trials is not known before.
  std::string_view outcome;  ///< The driver's word, once it has ended.
  double seconds = 0;
};

struct TrialCallbacks {
  std::function<void(const TrialProgress&)> on_start;
  std::function<void(const TrialProgress&)> on_end;
};

struct TrialSummary {
  std::size_t parses = 0;
  std::size_t builds = 0;
  std::size_t processes = 1;
  double seconds = 0;

  void add(const TrialSummary& others) {
    parses += others.parses;
    builds += others.builds;
    processes += others.processes;
    seconds += others.seconds;
  }
};

/// Which TensorRT answers.
struct TensorRTIdentity {
  std::string flavor;  ///< rtx, full or lean.
  std::string module;  ///< Its Python module.
  std::string version;
};

/// Asks the TensorRT that is installed, through the engine driver.
class DriverTrials final : public Trials {
 public:
  /// Starts a process that loads TensorRT, and does not wait for it. When `should_stop` returns true, the process is
  /// ended and the call that waits for it throws Interrupted. Throws Error (missing_tool) if the driver is not found.
  DriverTrials(TrialOptions options, std::function<bool()> should_stop);

  /// Waits until TensorRT is loaded, and loads the plugin `libraries`. The budget of time begins here. Must be called
  /// once, before any other method. Throws EngineError if TensorRT or a library does not load.
  void load(const std::vector<std::string>& libraries, TrialCallbacks callbacks);

  [[nodiscard]] TensorRTIdentity tensorrt() const;
  [[nodiscard]] const nlohmann::json& creators() const override { return ready_["creators"]; }
  [[nodiscard]] bool is_spent() const override;
  [[nodiscard]] Trial parse(const onnx::Model& model) override;
  [[nodiscard]] Trial build(const onnx::Model& model, const BuildRanges& ranges, double share) override;

  [[nodiscard]] TrialSummary summary() const;

 private:
  [[nodiscard]] double seconds() const;
  /// Of the whole budget.
  [[nodiscard]] BudgetSpent seconds_spent() const;
  [[nodiscard]] Trial ask(std::string_view action, const onnx::Model& model, const BuildRanges& ranges, double share);

  TrialOptions options_;
  TrialCallbacks callbacks_;
  std::chrono::steady_clock::time_point started_;
  std::optional<onnx::TemporaryFolder> folder_;  ///< Holds the model that is asked about.
  engine::DriverSession session_;
  nlohmann::json ready_;
  std::size_t parses_ = 0;
  std::size_t builds_ = 0;
  std::size_t workers_ = 1;
};

}  // namespace graft::inspect
