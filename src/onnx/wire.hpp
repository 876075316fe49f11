// Large fields of a protobuf message, left where they are: the protobuf library would copy them.
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

/// Where messages of a schema lie in each other. Kinds of messages are numbers of the caller's own, the outermost is 0.
/// A kind has at most one field of data.
struct WireField {
  int message = 0;
  std::uint32_t field = 0;
  int inner = 0;  ///< The kind of message that the field holds, or wire_data.
};
inline constexpr int wire_data = -1;

/// The field that stands in the place of one that was cut out: a number, counted from 1, of CutMessage::pieces. It is
/// the highest field that protobuf has, which no schema uses.
inline constexpr std::uint32_t wire_piece_field = 536870911;

struct CutMessage {
  std::string rest;  ///< The message without its large fields.
  std::vector<std::string_view> pieces;
};

/// Cuts fields that `fields` marks as wire_data out of a message, where they take 256 bytes or more and stand once in
/// theirs. Nothing is copied but the rest. A piece number that is in one of these messages already is dropped.
/// Nothing for what is no protobuf, or is nested deeper than protobuf allows.
[[nodiscard]] std::optional<CutMessage> cut_large_fields(std::string_view message, std::span<const WireField> fields);

/// The pieces of a message while it is read.
class Pieces {
 public:
  /// `owner` keeps the bytes alive; without one they are copied when they are taken.
  Pieces(std::vector<std::string_view> pieces, std::shared_ptr<const void> owner)
      : pieces_(std::move(pieces)), owner_(std::move(owner)) {}

  /// Throws Error for a number that cut_large_fields has not given.
  [[nodiscard]] Bytes at(std::uint64_t number) const;

 private:
  std::vector<std::string_view> pieces_;
  std::shared_ptr<const void> owner_;
};

/// The length of a field, or its tag (its number times 8 and the wire type), as protobuf writes numbers.
void append_varint(std::string& out, std::uint64_t value);
inline constexpr std::uint64_t wire_length = 2;  ///< The wire type of fields with a length.

/// The piece number among fields in wire form, which the protobuf library keeps of fields that a schema does not have;
/// it is taken out.
[[nodiscard]] std::optional<std::uint64_t> take_piece(std::string& unknown_fields);

}  // namespace graft::onnx
