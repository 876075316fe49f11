// Which inputs of an operator the inputs of a plugin are that has them in another order.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graft/operator.hpp"

namespace graft {

/// Made from names of the operator's inputs, one for each input of the plugin, "" for one that the operator does not
/// need (DropIn::inputs). The first is the operator's first input, of which TensorRT tells the rank before all others.
/// Later inputs of the plugin may be left out if the operator does not require them.
///
/// The operator may have an optional input before one that is given. It counts as left out when it has no elements, so
/// that is what stands in its place: a tensor of the shape {0} and of the type of the first input.
class InputOrder {
 public:
  InputOrder() = default;  ///< The operator's own order, of any operator.

  /// Fails, naming the input, for a name that is no input's, one that is there twice, a required input that is missing,
  /// another first input than the operator's, any names for an operator with shape inputs or variadic ones, and one
  /// that may be left out before others without having the first's type.
  [[nodiscard]] static Status make(const OperatorType& type, std::span<const std::string_view> names,
                                   InputOrder& result);
  /// That of a drop-in of a type that is registered, whose names are right; null: the operator's own. Throws
  /// std::invalid_argument for other names: check_operators() finds them before.
  [[nodiscard]] static InputOrder of(const OperatorType& type, const DropIn* drop_in);

  [[nodiscard]] bool is_own() const { return count_ == 0; }
  /// How many inputs a node of the plugin has, where this is not the operator's own order.
  [[nodiscard]] std::size_t least() const { return least_; }
  [[nodiscard]] std::size_t most() const { return count_; }

  /// The operator's input that input `index` is; nothing for one that the operator does not need.
  [[nodiscard]] std::optional<std::size_t> port_of(std::size_t index) const;
  /// The input of a plugin with `given` of them that is input `port` of the operator; nothing where it is left out.
  [[nodiscard]] std::optional<std::size_t> index_of(std::size_t port, std::size_t given) const;
  /// How many inputs the operator has where the plugin has `given`: those that are left out before others count.
  [[nodiscard]] std::size_t port_count(std::size_t given) const;

  /// `given` in the operator's order, with `left_out` for what is left out before others. Points into `given` where
  /// that is in order, and into `storage` otherwise.
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

  /// The names from which it was made, "x,offset,mask"; empty for the operator's own order.
  [[nodiscard]] std::string to_string(const OperatorType& type) const;
  /// The same from such a text.
  [[nodiscard]] static Status parse(const OperatorType& type, std::string_view text, InputOrder& result);

 private:
  static constexpr std::size_t unused = TypeRow::max_ports;
  std::array<std::size_t, TypeRow::max_ports> ports_{};  // of each input
  std::size_t count_ = 0;
  std::size_t least_ = 0;
};

}  // namespace graft
