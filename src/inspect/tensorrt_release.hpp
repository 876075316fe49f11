// What is known of each release of TensorRT: which operators it runs, in which types, and in which forms not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft::inspect {

enum class Flavor : std::uint8_t { rtx, full };

/// A release with its builder, as "rtx-1.5" and "tensorrt-10.13" name it.
struct Release {
  Flavor flavor = Flavor::rtx;
  int major = 0;
  int minor = 0;

  friend bool operator==(const Release&, const Release&) = default;
};

/// The newest release that was asked itself, which the rules mean where nothing else is said.
[[nodiscard]] Release newest_measured_release();

/// "rtx-1.5", "tensorrt-10.13"; what follows the second number ("10.13.3") does not matter. Nothing for a release of
/// which nothing is known.
[[nodiscard]] std::optional<Release> find_release(std::string_view name);

/// Of all releases of which something is known, the oldest of each flavor first.
[[nodiscard]] std::vector<std::string> release_names();

/// The release of that name. Throws Error that quotes `setting` and lists the releases.
[[nodiscard]] Release release_of(std::string_view name, std::string_view setting);

/// "rtx-1.5"
[[nodiscard]] std::string name_of(const Release& release);

/// "TensorRT-RTX 1.5", "TensorRT 10.13"
[[nodiscard]] std::string title_of(const Release& release);

enum class Answer : std::uint8_t { yes, no, unknown };

struct OperatorFact {
  Answer runs = Answer::unknown;
  std::string_view types = {};  ///< Words, of the port: those it runs in. Empty: not known.
  std::string_view open = {};   ///< Words: types of which that could not be found out.
  std::size_t port = 0;         ///< The input whose type it is.
  std::string source = {};      ///< "measured in TensorRT-RTX 1.5.0.114"
};

/// What a release makes of an operator of the standard domain, if nothing about the node is special.
[[nodiscard]] OperatorFact operator_fact(const Release& release, std::string_view op_type);

struct FormFact {
  Answer runs = Answer::unknown;
  std::string source = {};
};

/// What a release makes of a special form of an operator: tensorrt_facts.json names them.
[[nodiscard]] FormFact form_fact(const Release& release, std::string_view form);

/// Whether a list of words has this one.
[[nodiscard]] bool has_word(std::string_view words, std::string_view word);

}  // namespace graft::inspect
