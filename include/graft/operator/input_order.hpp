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
  InputOrder() = default;  ///< Maps each input to itself.

  /// Writes the order for these names to `result`. Returns invalid_argument, naming the input, for a name that no input
  /// has, a name that occurs twice, a required input that is missing, a first name that is not the operator's first
  /// input, any names for an operator with shape inputs or a variadic input, and an input that may be left out before
  /// another one and does not have the type of the first input.
  [[nodiscard]] static Status make(const OperatorType& type, std::span<const std::string_view> names,
                                   InputOrder& result);
  /// Returns the order of a drop-in; the operator's own order where `drop_in` is null. Throws std::invalid_argument for
  /// names that make() refuses. The names of a registered operator are valid: check_operators() has checked them.
  [[nodiscard]] static InputOrder of(const OperatorType& type, const DropIn* drop_in);

  [[nodiscard]] bool is_own() const { return count_ == 0; }
  /// The smallest and the largest number of inputs of a plugin node, where is_own() is false.
  [[nodiscard]] std::size_t least() const { return least_; }
  [[nodiscard]] std::size_t most() const { return count_; }

  /// Returns the operator's input for the plugin's input `index`, or nothing where the operator does not need that
  /// input.
  [[nodiscard]] std::optional<std::size_t> port_of(std::size_t index) const;
  /// Returns the index of the operator's input `port` among the `given` inputs of a plugin node, or nothing where the
  /// node leaves that input out.
  [[nodiscard]] std::optional<std::size_t> index_of(std::size_t port, std::size_t given) const;
  /// Returns the number of inputs that the operator gets from a plugin node with `given` inputs. Left-out inputs before
  /// the last one count.
  [[nodiscard]] std::size_t port_count(std::size_t given) const;

  /// Returns `given` in the operator's order, with `left_out` in the place of each left-out input before the last one.
  /// The result points into `given` where is_own() is true, and into `storage` otherwise, which has room for
  /// port_count() elements.
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

  /// Returns the names of the order joined by commas, "x,offset,mask"; empty for the operator's own order.
  [[nodiscard]] std::string to_string(const OperatorType& type) const;
  /// Parses the result of to_string(). Fails as make() does.
  [[nodiscard]] static Status parse(const OperatorType& type, std::string_view text, InputOrder& result);

 private:
  static constexpr std::size_t unused = TypeRow::max_ports;
  std::array<std::size_t, TypeRow::max_ports> ports_{};  // the operator's input for each plugin input
  std::size_t count_ = 0;
  std::size_t least_ = 0;
};

}  // namespace graft
