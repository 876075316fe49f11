// Facts about each release of TensorRT: the operators that it runs, in which types, and in which forms not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/report/tensorrt.hpp"

namespace graft::inspect {

enum class Flavor : std::uint8_t { rtx, full };

/// A release of TensorRT, named "rtx-1.5" or "tensorrt-10.13", for example. Graft has a table of the operators and
/// types that each release runs.
struct Release {
  Flavor flavor = Flavor::rtx;
  int major = 0;
  int minor = 0;

  friend bool operator==(const Release&, const Release&) = default;
};

/// Returns the newest release of TensorRT-RTX that Graft knows, for which measurements showed which operators it runs.
/// It is the default release for all rules.
[[nodiscard]] Release newest_measured_release();

/// Returns the release with a name such as "rtx-1.5" or "tensorrt-10.13", or nothing if Graft does not know which
/// operators it runs. A third and further version numbers ("10.13.3") are ignored.
[[nodiscard]] std::optional<Release> find_release(std::string_view name);

/// Returns the names of all releases that find_release() knows, for each flavor from the oldest to the newest.
[[nodiscard]] std::vector<std::string> release_names();

/// Returns the release with this name. Throws Error if the name is unknown; the message begins with `setting` and lists
/// the known releases.
[[nodiscard]] Release release_of(std::string_view name, std::string_view setting);

/// Returns the name of a release, such as "rtx-1.5", as find_release() accepts it.
[[nodiscard]] std::string name_of(const Release& release);

/// Returns a release as reports describe it: the flavor "rtx" or "full", and the version "1.5".
[[nodiscard]] report::TensorRTIdentity identity_of(const Release& release);

/// Returns the product name and version for messages, such as "TensorRT-RTX 1.5" or "TensorRT 10.13".
[[nodiscard]] std::string title_of(const Release& release);

enum class Answer : std::uint8_t { yes, no, unknown };

struct OperatorFact {
  Answer runs = Answer::unknown;
  /// The types of input `port` with which the operator runs, separated by spaces; empty if unknown.
  std::string_view types = {};
  std::string_view open = {};  ///< Types of input `port` whose support could not be determined, separated by spaces.
  std::size_t port = 0;        ///< The input to whose type `types` and `open` refer.
  std::string source = {};     ///< The source of the fact, such as "measured in TensorRT-RTX 1.5.0.114".
};

/// Returns whether, and with which types, a release runs an operator of the default ONNX domain. The answer is valid
/// for nodes without a special form: attributes, types or shapes for which TensorRT may behave differently (see
/// forms_of).
[[nodiscard]] OperatorFact operator_fact(const Release& release, std::string_view op_type);

struct FormFact {
  Answer runs = Answer::unknown;
  std::string source = {};
};

/// Returns whether a release runs nodes with a special form (see forms_of). `form` is the name of the form in
/// tensorrt_facts.json.
[[nodiscard]] FormFact form_fact(const Release& release, std::string_view form);

/// Returns a reason, as a clause, if a release runs no plugins at all because neither its parser nor its network API
/// adds them. Returns nothing if plugins run, or if that is unknown.
[[nodiscard]] std::optional<std::string> refusal_of_plugins(const Release& release);

/// Returns whether a release builds a plugin in the body of an If, Loop or Scan.
[[nodiscard]] Answer builds_plugins_in_bodies(const Release& release);

/// Returns a reason, as a clause, if a release does not build plugins in the body of an If, Loop or Scan or if that is
/// unknown. Returns nothing if it builds them.
[[nodiscard]] std::optional<std::string> refusal_of_plugins_in_bodies(const Release& release);

/// Returns whether a release is known to build com.microsoft.MultiHeadAttention without masks and caches as a native
/// layer.
[[nodiscard]] bool has_multi_head_attention(const Release& release);

/// Returns the names of the passes that rewrite nodes which a release computes wrongly.
[[nodiscard]] std::vector<std::string> guards_for(const Release& release);

/// Returns the names of the passes that rewrite nodes which a release refuses, although newer releases run them.
[[nodiscard]] std::vector<std::string> lowerings_for(const Release& release);

/// Returns whether `words`, a list separated by spaces, contains `word`.
[[nodiscard]] bool has_word(std::string_view words, std::string_view word);

}  // namespace graft::inspect
