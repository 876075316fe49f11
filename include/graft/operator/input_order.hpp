// Maps the inputs of another library's plugin to the inputs of an operator, where their order differs.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graft/operator/operator.hpp"

namespace graft {

/// A map from the inputs of a plugin to the inputs of an operator. DropIn::inputs declares it: the name of an
/// operator's input for each input of the plugin, "" for a plugin input that the operator does not need. The first name
/// is the operator's first input, because TensorRT reports the rank of that input before all other ranks. Later inputs
/// of the plugin may be left out if the operator does not require them.
///
/// The operator may have an optional input before one that the node has. An optional input without elements counts as
/// left out, so a tensor of shape {0} and of the type of the first input takes its place.
class InputOrder {
 public:
  InputOrder() = default;  ///< Creates the order that maps each input to itself.

  /// Writes the order for these names to `result`. Returns invalid_argument, naming the input, for a name that no input
  /// has, a name that occurs twice, a required input that is missing, a first name that is not the operator's first
  /// input, any names for an operator with shape inputs or a variadic input, and an input that may be left out before
  /// another one and does not have the type of the first input.
  [[nodiscard]] static Status make(const OperatorType& type, std::span<const std::string_view> names,
                                   InputOrder& result);
  /// Returns the input order of a drop-in, or the operator's own order if `drop_in` is null. Throws
  /// std::invalid_argument for names that make() refuses, which registered operators do not have: check_operators() has
  /// checked their names.
  [[nodiscard]] static InputOrder of(const OperatorType& type, const DropIn* drop_in);

  [[nodiscard]] bool is_own() const { return count_ == 0; }
  /// Returns the smallest number of inputs of a plugin node; most() returns the largest. Meaningful only if is_own() is
  /// false.
  [[nodiscard]] std::size_t least() const { return least_; }
  [[nodiscard]] std::size_t most() const { return count_; }

  /// Returns the operator's input for the plugin's input `index`, or nothing where the operator does not need that
  /// input.
  [[nodiscard]] std::optional<std::size_t> port_of(std::size_t index) const;
  /// Returns the index of the operator's input `port` among the `given` inputs of a plugin node, or nothing where the
  /// node leaves that input out.
  [[nodiscard]] std::optional<std::size_t> index_of(std::size_t port, std::size_t given) const;
  /// Returns the number of inputs that the operator receives from a plugin node with `given` inputs, including left-out
  /// inputs before the last one.
  [[nodiscard]] std::size_t port_count(std::size_t given) const;

  /// Returns `given` in the operator's order, with `left_out` for each left-out input before the last one. The result
  /// points into `given` if is_own() is true. Otherwise it points into `storage`, which must have room for port_count()
  /// elements.
  template <class T>
  [[nodiscard]] std::span<const T> arrange(std::span<const T> given, const T& left_out, std::span<T> storage) const {
    if (is_own()) return given;
    const std::size_t count = port_count(given.size());
    for (std::size_t port = 0; port < count; ++port) {
      const std::optional<std::size_t> index = index_of(port, given.size());
      storage[port] = index ? given[*index] : left_out;
    }
    return storage.first(count);
  }

  /// Returns the operator's names for the plugin's inputs, joined by commas, such as "x,offset,mask"; an empty string
  /// for the operator's own order.
  [[nodiscard]] std::string to_string(const OperatorType& type) const;
  /// Parses the result of to_string(). Fails under the same conditions as make().
  [[nodiscard]] static Status parse(const OperatorType& type, std::string_view text, InputOrder& result);

 private:
  static constexpr std::size_t unused = TypeRow::max_ports;
  std::array<std::size_t, TypeRow::max_ports> ports_{};  // The operator's input for each input of the plugin.
  std::size_t count_ = 0;
  std::size_t least_ = 0;
};

}  // namespace graft
