// Parses and formats the lines of calibration cache files.
#include "quant/calibrate/calibration_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "core/atomic_file.hpp"
#include "graft/error.hpp"
#include "graft/operator/operator.hpp"
#include "graft/setting.hpp"
#include "onnx/mapped_file.hpp"

namespace graft::quant {
namespace {

constexpr std::string_view first_line = "TRT-<version>-<algorithm>, for example TRT-8601-EntropyCalibration2";
constexpr std::size_t longest_quote = 60;

/// Returns whether a version number in a cache file is one of TensorRT 7 to 10. Up to TensorRT 9 it is 1000 major + 100
/// minor + patch; from TensorRT 10 on it is 10000 major + 100 minor + patch.
bool is_known(std::int64_t version) {
  constexpr std::int64_t oldest = 7000;
  constexpr std::int64_t end_of_short = 10000;
  constexpr std::int64_t first_of_10 = 100000;
  constexpr std::int64_t first_of_11 = 110000;
  return (version >= oldest && version < end_of_short) || (version >= first_of_10 && version < first_of_11);
}

bool is_control(char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }

/// Returns whether a character is a control character or not ASCII, which could confuse a terminal in a message.
bool is_unprintable(char c) { return is_control(c) || static_cast<unsigned char>(c) >= 0x80; }

std::string in_quotes(std::string_view text) {
  std::string shown(text.substr(0, longest_quote));
  std::replace_if(shown.begin(), shown.end(), is_unprintable, '?');
  return fmt::format("'{}{}'", shown, text.size() > longest_quote ? " ..." : "");
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// Returns the number of type T that the whole string represents, or nothing if it is not a number.
template <class T>
std::optional<T> number(std::string_view text, int base) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value, base);
  if (problem != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

/// Returns "NaN" or "negative" if a number cannot be a scale, otherwise an empty string. Infinity is allowed: TensorRT
/// writes it for a mask.
std::string_view refusal(float scale) {
  if (std::isnan(scale)) return "NaN";
  return std::signbit(scale) ? "negative" : "";
}

void parse_first_line(std::string_view line, std::string_view where, CalibrationCache& cache) {
  constexpr std::string_view begin = "TRT-";
  const std::size_t dash = line.find('-', begin.size());
  if (line.substr(0, begin.size()) != begin || dash == std::string_view::npos) {
    throw Error(fmt::format("{}: the first line is {}; a calibration cache must begin with {}", where, in_quotes(line),
                            first_line));
  }
  const std::string_view digits = line.substr(begin.size(), dash - begin.size());
  const auto version = number<std::int64_t>(digits, 10);
  if (!version || !is_known(*version)) {
    throw Error(
        fmt::format("{}: the version is {}; it must be a version of TensorRT 7 to 10, written as 7000 to 9999 or as "
                    "100000 to 109999",
                    where, in_quotes(digits)));
  }
  const std::string_view algorithm = line.substr(dash + 1);
  if (!is_word(algorithm)) {
    throw Error(fmt::format("{}: the algorithm is {}; it must consist of letters, digits and underscores, as in {}",
                            where, in_quotes(algorithm), first_line));
  }
  cache.version = *version;
  cache.algorithm = algorithm;
}

CalibrationCache::Entry parse_entry(std::string_view line, std::string_view where) {
  // A tensor's name may contain colons, but its scale cannot.
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos) {
    throw Error(fmt::format("{}: the line is {}; it must be TENSOR: SCALE, for example data: 3c010a14", where,
                            in_quotes(line)));
  }
  const std::string_view tensor = line.substr(0, colon);
  if (tensor.empty())
    throw Error(
        fmt::format("{}: the line is {}; the name of a tensor must come before the colon", where, in_quotes(line)));
  if (std::any_of(tensor.begin(), tensor.end(), is_control)) {
    throw Error(fmt::format("{}: the tensor's name {} contains a control character", where, in_quotes(tensor)));
  }
  const std::string_view digits = trimmed(line.substr(colon + 1));
  const auto bits = number<std::uint32_t>(digits, 16);
  if (!bits) {
    throw Error(
        fmt::format("{}: the scale of {} is {}; it must be 1 to 8 hexadecimal digits, the bits of a 32-bit float",
                    where, in_quotes(tensor), in_quotes(digits)));
  }
  const auto scale = std::bit_cast<float>(*bits);
  if (!refusal(scale).empty()) {
    throw Error(fmt::format("{}: the scale of {} is {}, which is {}; a scale must be at least 0", where,
                            in_quotes(tensor), in_quotes(digits), refusal(scale)));
  }
  return {std::string(tensor), scale};
}

}  // namespace

const CalibrationCache::Entry* CalibrationCache::find(std::string_view tensor) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.tensor == tensor; });
  return found == entries.end() ? nullptr : &*found;
}

CalibrationCache parse_calibration_cache(std::string_view text, std::string_view name) {
  CalibrationCache cache;
  std::unordered_map<std::string, std::size_t> lines;
  for (std::size_t number = 1; !text.empty() || number == 1; ++number) {
    const std::string where = fmt::format("{}:{}", name, number);
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1) {
      parse_first_line(line, where, cache);
      continue;
    }
    if (trimmed(line).empty()) continue;
    CalibrationCache::Entry entry = parse_entry(line, where);
    const auto [found, is_new] = lines.emplace(entry.tensor, number);
    if (!is_new) {
      throw Error(fmt::format("{}: {} already has a scale in line {}; remove one of the two lines", where,
                              in_quotes(entry.tensor), found->second));
    }
    cache.entries.push_back(std::move(entry));
  }
  return cache;
}

CalibrationCache read_calibration_cache(const std::filesystem::path& path) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20U;  // Enough for a million tensors.
  return parse_calibration_cache(onnx::MappedFile::open(path, most_bytes)->view(), path.string());
}

std::string format_calibration_cache(const CalibrationCache& cache) {
  std::string text = fmt::format("TRT-{}-{}\n", cache.version, cache.algorithm);
  for (const CalibrationCache::Entry& entry : cache.entries) {
    text += fmt::format("{}: {:x}\n", entry.tensor, std::bit_cast<std::uint32_t>(entry.scale));
  }
  if (parse_calibration_cache(text, "calibration cache") != cache) {
    throw Error(Error::Kind::internal, "the text of a calibration cache does not parse to the same entries");
  }
  return text;
}

namespace {

/// Returns the tensor and scale of a QuantizeLinear, or of a DequantizeLinear after a Graft operator; nothing for other
/// nodes and for constants. Throws Error if a cache cannot represent the scale.
std::optional<CalibrationCache::Entry> entry_of(const onnx::Node& node) {
  // The int8 output of a Graft operator has the tensor's name only after DequantizeLinear.
  const onnx::Node* maker = node.input(0) == nullptr ? nullptr : node.input(0)->producer;
  const bool from_operator = node.is("DequantizeLinear") && maker != nullptr && maker->domain == onnx_domain;
  if (!node.is("QuantizeLinear") && !from_operator) return std::nullopt;
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("{}: {}; a calibration cache contains one scale per tensor and no zero point",
                            onnx::describe(node), why));
  };
  const auto scale = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant();
  if (!scale) refuse("its scale is not a constant");
  if (!scale->scalar()) refuse("it has a scale for each channel");
  const auto zero = node.input(2) == nullptr ? std::nullopt : node.input(2)->constant();
  if (zero && zero->scalar().value_or(0) != 0) refuse(fmt::format("its zero point is {}", *zero->scalar()));
  const onnx::Value& named = from_operator ? *node.output() : *node.input(0);
  return CalibrationCache::Entry{named.name, static_cast<float>(*scale->scalar())};
}

}  // namespace

CalibrationCache cache_of(const onnx::Model& model) {
  CalibrationCache found{.version = newest_cache_version, .algorithm = "EntropyCalibration2", .entries = {}};
  for (const onnx::Node* node : model.graph().nodes()) {
    auto entry = entry_of(*node);
    if (entry && found.find(entry->tensor) == nullptr) found.entries.push_back(std::move(*entry));
  }
  if (found.entries.empty()) {
    throw Error(
        fmt::format("{}: no node quantizes a tensor to int8, so there are no scales for a calibration cache\nCreate a "
                    "quantized model with {}",
                    model.source, setting_name(Setting::quantize_int8)));
  }
  const auto note = model.metadata.find(cache_note);
  if (note == model.metadata.end()) return found;
  CalibrationCache remembered = parse_calibration_cache(note->second, model.source + ": metadata");
  const bool same = std::all_of(found.entries.begin(), found.entries.end(), [&](const CalibrationCache::Entry& entry) {
    const CalibrationCache::Entry* other = remembered.find(entry.tensor);
    return other != nullptr && other->scale == entry.scale;
  });
  return same ? remembered : found;
}

void write_calibration_cache(const std::filesystem::path& path, const CalibrationCache& cache) {
  write_file(path, format_calibration_cache(cache));
}

}  // namespace graft::quant
