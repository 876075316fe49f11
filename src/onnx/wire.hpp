// Cuts large fields out of a protobuf message without copying them, as the protobuf library would.
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

/// A field of a schema that holds another message, or data. Kinds of messages are numbers that the caller chooses; the
/// outermost kind is 0. A kind has at most one field of data.
struct WireField {
  int message = 0;
  std::uint32_t field = 0;
  int inner = 0;  ///< The kind of message that the field holds, or wire_data.
};
inline constexpr int wire_data = -1;

/// The field that replaces a field that was cut out. Its value is the number, counted from 1, of an element of
/// CutMessage::pieces. The field number is the highest of protobuf, which no schema uses.
inline constexpr std::uint32_t wire_piece_field = 536870911;

struct CutMessage {
  std::string rest;  ///< The message without its large fields.
  std::vector<std::string_view> pieces;
};

/// Cuts fields that `fields` marks as wire_data out of a message, if they take 256 bytes or more and occur once in
/// their message. Copies only the rest. Drops piece fields that the message already has. Returns nothing for a message
/// that is not a protobuf, or that is nested deeper than protobuf allows.
[[nodiscard]] std::optional<CutMessage> cut_large_fields(std::string_view message, std::span<const WireField> fields);

/// Returns the size that a truncated message has to have at least, for the field that its last bytes begin; nothing if
/// another part of the message is wrong, or if the last field has another number.
[[nodiscard]] std::optional<std::uint64_t> size_before_truncation(std::string_view message, std::uint32_t field);

/// The pieces of a message while it is read.
class Pieces {
 public:
  /// `owner` keeps the bytes alive; without one, each piece is copied when it is requested.
  Pieces(std::vector<std::string_view> pieces, std::shared_ptr<const void> owner)
      : pieces_(std::move(pieces)), owner_(std::move(owner)) {}

  /// Returns a piece. Throws Error for a number that cut_large_fields did not assign.
  [[nodiscard]] Bytes at(std::uint64_t number) const;

 private:
  std::vector<std::string_view> pieces_;
  std::shared_ptr<const void> owner_;
};

/// Appends a number as protobuf encodes it: the length of a field, or a tag (field number times 8 plus wire type).
void append_varint(std::string& out, std::uint64_t value);
inline constexpr std::uint64_t wire_length = 2;  ///< The wire type of fields with a length.

/// Removes the piece field from fields in wire form, which the protobuf library keeps for fields that a schema does not
/// have, and returns its number; nothing if there is no piece field.
[[nodiscard]] std::optional<std::uint64_t> take_piece(std::string& unknown_fields);

}  // namespace graft::onnx
