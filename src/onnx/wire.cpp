// Parses protobuf's wire format, and skips large fields without reading them.
#include "onnx/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graft/error.hpp"

namespace graft::onnx {
namespace {

constexpr std::size_t least_cut = 256;
constexpr int deepest = 100;  // protobuf has the same limit.

struct Field {
  std::uint32_t number = 0;
  std::string_view whole;  ///< The whole field, including its tag.
  bool has_length = false;
  std::string_view content;  ///< The content of a length-delimited field.
  std::uint64_t value = 0;   ///< The value of a varint.
};

std::optional<std::uint64_t> read_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80U) return value;
  }
  return std::nullopt;
}

/// Removes and returns the first field of `bytes`, or returns nothing if the bytes are not a field. Groups are not
/// supported, because no schema of ONNX has them.
std::optional<Field> next_field(std::string_view& bytes) {
  const std::string_view start = bytes;
  const auto tag = read_varint(bytes);
  if (!tag || (*tag >> 3U) == 0 || (*tag >> 3U) > wire_piece_field) return std::nullopt;
  Field field{.number = static_cast<std::uint32_t>(*tag >> 3U), .whole = {}, .content = {}};
  const auto skip = [&](std::uint64_t count) {
    if (count > bytes.size()) return false;
    field.content = bytes.substr(0, static_cast<std::size_t>(count));
    bytes.remove_prefix(static_cast<std::size_t>(count));
    return true;
  };
  switch (*tag & 7U) {
    case 0: {
      const auto value = read_varint(bytes);
      if (!value) return std::nullopt;
      field.value = *value;
      break;
    }
    case 1:
      if (!skip(8)) return std::nullopt;
      break;
    case wire_length: {
      const auto length = read_varint(bytes);
      if (!length || !skip(*length)) return std::nullopt;
      field.has_length = true;
      break;
    }
    case 5:
      if (!skip(4)) return std::nullopt;
      break;
    default: return std::nullopt;
  }
  field.whole = start.substr(0, start.size() - bytes.size());
  return field;
}

class Cutter {
 public:
  Cutter(std::span<const WireField> fields, std::vector<std::string_view>& pieces) : fields_(fields), pieces_(pieces) {}

  /// Appends the message to `out`, with its large fields replaced by piece fields, and appends the contents of the
  /// large fields to `pieces_`. `kind` is the number of the message's kind (see WireField), and `depth` the number of
  /// enclosing messages. Returns false if the message is not a protobuf or is nested too deeply.
  bool cut(std::string_view message, int kind, int depth, std::string& out) {  // NOLINT(misc-no-recursion): bounded
    if (depth > deepest) return false;
    std::optional<bool> data_stands_once;  // Computed once, because a message may contain any number of large fields.
    for (std::string_view left = message; !left.empty();) {
      const auto field = next_field(left);
      if (!field) return false;
      if (field->number == wire_piece_field) continue;
      const auto known = std::find_if(fields_.begin(), fields_.end(), [&](const WireField& candidate) {
        return candidate.message == kind && candidate.field == field->number;
      });
      const bool is_known = known != fields_.end() && field->has_length;
      const bool is_large_data = is_known && known->inner == wire_data && field->content.size() >= least_cut;
      if (is_large_data && !data_stands_once) data_stands_once = stands_once(message, field->number);
      // Small fields are parsed too, because they may contain piece fields.
      if (is_known && known->inner != wire_data) {
        std::string inner;
        if (!cut(field->content, known->inner, depth + 1, inner)) return false;
        append_varint(out, (std::uint64_t{field->number} << 3U) | wire_length);
        append_varint(out, inner.size());
        out += inner;
      } else if (is_large_data && *data_stands_once) {
        append_varint(out, std::uint64_t{wire_piece_field} << 3U);
        pieces_.push_back(field->content);
        append_varint(out, pieces_.size());
      } else {
        out += field->whole;
      }
    }
    return true;
  }

 private:
  static bool stands_once(std::string_view message, std::uint32_t number) {
    int count = 0;
    while (!message.empty() && count < 2) {
      const auto field = next_field(message);
      if (!field) return false;
      if (field->number == number) ++count;
    }
    return count == 1;
  }

  std::span<const WireField> fields_;
  std::vector<std::string_view>& pieces_;
};

}  // namespace

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80U; value >>= 7U) out.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
  out.push_back(static_cast<char>(value));
}

std::optional<CutMessage> cut_large_fields(std::string_view message, std::span<const WireField> fields) {
  CutMessage result;
  result.rest.reserve(message.size());  // Only the pages that are written use memory.
  if (!Cutter(fields, result.pieces).cut(message, 0, 0, result.rest)) return std::nullopt;
  return result;
}

std::optional<std::uint64_t> size_before_truncation(std::string_view message, std::uint32_t field) {
  for (std::string_view left = message; !left.empty();) {
    std::string_view rest = left;
    if (next_field(left)) continue;
    if (read_varint(rest) != ((std::uint64_t{field} << 3U) | wire_length)) return std::nullopt;
    const auto length = read_varint(rest);
    if (!length || *length <= rest.size() || *length > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    return message.size() - rest.size() + *length;
  }
  return std::nullopt;
}

Bytes Pieces::at(std::uint64_t number) const {
  if (number == 0 || number > pieces_.size()) {
    throw Error(fmt::format("field {} is not in any schema and refers to data that the file does not contain",
                            wire_piece_field));
  }
  const std::string_view piece = pieces_[static_cast<std::size_t>(number) - 1];
  return owner_ == nullptr ? Bytes(std::string(piece)) : Bytes(owner_, {piece.data(), piece.size()});
}

std::optional<std::uint64_t> take_piece(std::string& unknown_fields) {
  std::optional<std::uint64_t> found;
  std::string others;
  for (std::string_view left = unknown_fields; !left.empty();) {
    const auto field = next_field(left);
    if (!field) break;
    if (field->number == wire_piece_field) {
      found = field->value;
    } else {
      others += field->whole;
    }
  }
  if (found) unknown_fields = std::move(others);
  return found;
}

}  // namespace graft::onnx
