// Cuts large fields out of a protobuf message without copying them. The protobuf library would copy them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/tensor_data.hpp"

namespace graft::onnx {

/// A field of a schema that contains another message, or data. The caller chooses a number for each kind of message;
/// the outermost kind is 0. A kind has at most one data field.
struct WireField {
  int message = 0;
  std::uint32_t field = 0;
  int inner = 0;  ///< The kind of message that the field contains, or wire_data.
};
inline constexpr int wire_data = -1;

/// The number of the field that replaces a field that was cut out. Its value is the index, counted from 1, of an
/// element of CutMessage::pieces. The field number is the highest of protobuf, which no schema uses.
inline constexpr std::uint32_t wire_piece_field = 536870911;

struct CutMessage {
  std::string rest;  ///< The message without its large fields.
  std::vector<std::string_view> pieces;
};

/// Cuts fields that `fields` marks as wire_data out of a message, if they take 256 bytes or more and occur once in
/// their message. Copies only the bytes of the other fields. Drops piece fields that the message already has. Returns
/// nothing for a message that is not a protobuf, or that is nested deeper than protobuf allows.
[[nodiscard]] std::optional<CutMessage> cut_large_fields(std::string_view message, std::span<const WireField> fields);

/// Returns the smallest size in bytes that a truncated message can have had. It is computed from the length of the last
/// field, which must be the field with the number `field`. Returns nothing if the message is not truncated within that
/// field.
[[nodiscard]] std::optional<std::uint64_t> size_before_truncation(std::string_view message, std::uint32_t field);

/// The large fields that cut_large_fields() removed from a message, for the reader of the message.
class Pieces {
 public:
  /// Creates the pieces from CutMessage::pieces. `owner` keeps their bytes alive; if it is null, each piece is copied
  /// when it is requested.
  Pieces(std::vector<std::string_view> pieces, std::shared_ptr<const void> owner)
      : pieces_(std::move(pieces)), owner_(std::move(owner)) {}

  /// Returns a piece by its number, the value of its piece field. Throws Error for a number that cut_large_fields did
  /// not assign.
  [[nodiscard]] Bytes at(std::uint64_t number) const;

 private:
  std::vector<std::string_view> pieces_;
  std::shared_ptr<const void> owner_;
};

/// Appends a number in protobuf's varint encoding: the length of a field, or a tag (field number times 8 plus wire
/// type).
void append_varint(std::string& out, std::uint64_t value);
inline constexpr std::uint64_t wire_length = 2;  ///< The wire type of length-delimited fields.

/// Removes the piece field from `unknown_fields`, in which the protobuf library keeps the fields that are not in a
/// schema, and returns its value, the number of a piece; nothing if there is no piece field.
[[nodiscard]] std::optional<std::uint64_t> take_piece(std::string& unknown_fields);

}  // namespace graft::onnx
