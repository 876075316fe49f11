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

/// A release of TensorRT with a builder, named "rtx-1.5" or "tensorrt-10.13", for example.
struct Release {
  Flavor flavor = Flavor::rtx;
  int major = 0;
  int minor = 0;

  friend bool operator==(const Release&, const Release&) = default;
};

/// Returns the newest measured release, a TensorRT-RTX, to which the rules apply unless another release is named.
[[nodiscard]] Release newest_measured_release();

/// Returns the release with a name such as "rtx-1.5" or "tensorrt-10.13", or nothing if there are no facts about it.
/// Numbers after the second one ("10.13.3") are ignored.
[[nodiscard]] std::optional<Release> find_release(std::string_view name);

/// Returns the names of all releases with facts, the oldest of each flavor first.
[[nodiscard]] std::vector<std::string> release_names();

/// Returns the release of that name. Throws Error that quotes `setting` and lists the releases.
[[nodiscard]] Release release_of(std::string_view name, std::string_view setting);

/// Returns a name such as "rtx-1.5".
[[nodiscard]] std::string name_of(const Release& release);

/// Returns a release as reports name it: the flavor "rtx" or "full", and the version "1.5".
[[nodiscard]] report::TensorRTIdentity identity_of(const Release& release);

/// Returns a title such as "TensorRT-RTX 1.5" or "TensorRT 10.13".
[[nodiscard]] std::string title_of(const Release& release);

enum class Answer : std::uint8_t { yes, no, unknown };

struct OperatorFact {
  Answer runs = Answer::unknown;
  /// Types of input `port` in which the operator runs, separated by spaces; empty if unknown.
  std::string_view types = {};
  std::string_view open = {};  ///< Types of input `port` whose support could not be determined, separated by spaces.
  std::size_t port = 0;        ///< The input to whose type `types` and `open` refer.
  std::string source = {};     ///< The source of the fact, such as "measured in TensorRT-RTX 1.5.0.114".
};

/// Returns whether a release runs an operator of the standard domain, for nodes without a special form.
[[nodiscard]] OperatorFact operator_fact(const Release& release, std::string_view op_type);

struct FormFact {
  Answer runs = Answer::unknown;
  std::string source = {};
};

/// Returns whether a release runs a special form of an operator. tensorrt_facts.json lists the forms.
[[nodiscard]] FormFact form_fact(const Release& release, std::string_view form);

/// Returns why no plugin runs in a release: neither its parser nor its network interface adds one to a network. Returns
/// nothing if plugins run, or if that is unknown.
[[nodiscard]] std::optional<std::string> refusal_of_plugins(const Release& release);

/// Returns whether a release builds a plugin in the body of an If, Loop or Scan.
[[nodiscard]] Answer builds_plugins_in_bodies(const Release& release);

/// Returns why a plugin in the body of an If, Loop or Scan cannot be relied on: the release does not build it there, or
/// that is unknown. Returns nothing if the release builds it.
[[nodiscard]] std::optional<std::string> refusal_of_plugins_in_bodies(const Release& release);

/// Returns whether a release is known to build the plain form of ONNX Runtime's MultiHeadAttention itself.
[[nodiscard]] bool has_multi_head_attention(const Release& release);

/// Returns the names of the passes that rewrite nodes which a release computes wrongly.
[[nodiscard]] std::vector<std::string> guards_for(const Release& release);

/// Returns whether a list of words, separated by spaces, contains `word`.
[[nodiscard]] bool has_word(std::string_view words, std::string_view word);

}  // namespace graft::inspect
