// Reads and writes NumPy's array files. Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "io/npy.hpp"

#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "core/atomic_file.hpp"
#include "graft/error.hpp"
#include "onnx/mapped_file.hpp"

static_assert(std::endian::native == std::endian::little, "arrays are copied as they lie in the file");

namespace graft::io {
namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};
constexpr std::size_t largest_header = 1U << 20U;  // The headers that NumPy writes are shorter than 200 bytes.
constexpr std::size_t largest_rank = 64;           // The largest rank that NumPy supports.

// The earliest time of a file in a zip archive, in MS-DOS's format (a date has 7 bits for the year since 1980, 4 for
// the month and 5 for the day). NumPy writes it too.
constexpr zip_uint16_t midnight = 0;
constexpr zip_uint16_t first_of_january_1980 = 1U << 5U | 1U;

struct TypeEntry {
  std::string_view descr;
  onnx::ElementType type;
  std::int64_t size;
};
constexpr std::array<TypeEntry, 13> types{{{"|b1", onnx::ElementType::boolean, 1},
                                           {"|i1", onnx::ElementType::i8, 1},
                                           {"|u1", onnx::ElementType::u8, 1},
                                           {"<i2", onnx::ElementType::i16, 2},
                                           {"<u2", onnx::ElementType::u16, 2},
                                           {"<i4", onnx::ElementType::i32, 4},
                                           {"<u4", onnx::ElementType::u32, 4},
                                           {"<i8", onnx::ElementType::i64, 8},
                                           {"<u8", onnx::ElementType::u64, 8},
                                           {"<f2", onnx::ElementType::f16, 2},
                                           {"<f4", onnx::ElementType::f32, 4},
                                           {"<f8", onnx::ElementType::f64, 8},
                                           {"|V2", onnx::ElementType::bf16, 2}}};

[[noreturn]] void fail(std::string_view name, const std::string& what) { throw Error(std::string(name) + ": " + what); }

[[noreturn]] void fail_type(std::string_view name, std::string_view descr) {
  if (descr == "|O") {
    fail(name,
         "the array contains Python objects (|O), mostly because its rows have different lengths, and only numbers are "
         "supported. Create an array of numbers, as in `numpy.stack(rows)`, and save it again");
  }
  fail(name, "the element type is " + std::string(descr) +
                 "; only little-endian bool, int8 to int64, uint8 to uint64, float16 to float64 and bfloat16 are "
                 "supported. Convert the array in NumPy, as in `x.astype('<f4')`, and save it again");
}

/// Returns the size of the array's data in bytes, or nothing if it exceeds 64 bits or a dimension is negative.
std::optional<std::int64_t> byte_count(const std::vector<std::int64_t>& shape, std::int64_t element_size) {
  std::int64_t bytes = element_size;
  bool overflow = false;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (empty) return 0;
  if (overflow) return std::nullopt;
  return bytes;
}

struct Header {
  const TypeEntry* entry = nullptr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Parses the Python dictionary literal of a header. Supports only the syntax that NumPy writes there.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Header parse() {
    Header header;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        if (peek() != '\'' && peek() != '"') fail_type(name_, "'structured'");
        header.entry = type_of(quoted());
      } else if (key == "fortran_order") {
        has_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape") {
        has_shape = true;
        header.shape = shape();
      } else {
        damaged();
      }
      if (!accept(',') && peek() != '}') damaged();
    }
    if (header.entry == nullptr || !has_order || !has_shape) damaged();
    return header;
  }

 private:
  [[noreturn]] void damaged() const { fail(name_, "its NumPy header is damaged"); }

  char peek() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_.front();
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) damaged();
  }
  bool accept_word(std::string_view word) {
    peek();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    text_.remove_prefix(1);
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) damaged();
    const std::string_view value = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    damaged();
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      std::int64_t extent = -1;
      peek();
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || extents.size() == largest_rank) damaged();
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      extents.push_back(extent);
      if (!accept(',') && peek() != ')') damaged();
    }
    return extents;
  }
  const TypeEntry* type_of(std::string_view descr) const {
    // One-byte and opaque types have no byte order; NumPy writes it as "|" or "<".
    const auto same = [&](const TypeEntry& entry) {
      if (entry.descr == descr) return true;
      return entry.descr.front() == '|' && descr.starts_with('<') && entry.descr.substr(1) == descr.substr(1);
    };
    const auto* found = std::find_if(types.begin(), types.end(), same);
    if (found == types.end()) fail_type(name_, descr);
    return found;
  }

  std::string_view text_;
  std::string_view name_;
};

/// Converts the data from column-major order, in which NumPy stores a transposed array, to row-major order.
void make_row_major(NpyArray& array, std::int64_t element_size) {
  std::vector<std::byte> result(array.data.size());
  const auto rank = array.shape.size();
  std::vector<std::int64_t> index(rank, 0);
  const auto size = static_cast<std::size_t>(element_size);
  for (std::size_t target = 0; target < result.size(); target += size) {
    std::size_t source = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      source = source * static_cast<std::size_t>(array.shape[axis]) + static_cast<std::size_t>(index[axis]);
    }
    std::memcpy(result.data() + target, array.data.data() + source * size, size);
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < array.shape[axis]) break;
      index[axis] = 0;
    }
  }
  array.data = std::move(result);
}

[[noreturn]] void fail_size(std::string_view name, std::size_t bytes) {
  fail(name,
       "its shape does not match its " + std::to_string(bytes) + " bytes of data; the file is truncated or damaged");
}

/// The number of bytes at the beginning of a file that contain the version and the length of the header.
constexpr std::size_t version_end = 12;

/// Returns the offset of the data of a .npy file, given its first bytes.
std::size_t npy_start(std::string_view bytes, std::string_view name) {
  if (!bytes.starts_with(magic)) fail(name, "this is not a .npy file");
  const auto byte_at = [&](std::size_t i) -> std::size_t {
    if (i >= bytes.size()) fail(name, "the .npy file is truncated");
    return static_cast<unsigned char>(bytes[i]);
  };
  const std::size_t version = byte_at(6);
  if (version < 1 || version > 3)
    fail(name,
         "the version of the .npy format is " + std::to_string(version) + "; only the versions 1 to 3 are supported");
  std::size_t length = byte_at(8) | byte_at(9) << 8U;
  if (version > 1) length |= byte_at(10) << 16U | byte_at(11) << 24U;
  if (length > largest_header) fail(name, "its NumPy header is damaged");
  return (version == 1 ? 10 : version_end) + length;
}

struct Layout {
  std::size_t bytes = 0;
  std::int64_t element_size = 0;
  bool fortran_order = false;
};

/// Parses everything before the data, and sets type and shape of the array.
Layout parse_layout(std::string_view start, std::string_view name, NpyArray& array) {
  const std::size_t begin = static_cast<unsigned char>(start[6]) == 1 ? 10 : version_end;
  if (start.size() != npy_start(start, name)) fail(name, "the .npy file is truncated");
  Header header = HeaderParser(start.substr(begin), name).parse();
  const std::optional<std::int64_t> bytes = byte_count(header.shape, header.entry->size);
  if (!bytes) fail(name, "the size of its data exceeds 64 bits; the file is damaged");
  array.type = header.entry->type;
  array.shape = std::move(header.shape);
  return {static_cast<std::size_t>(*bytes), header.entry->size, header.fortran_order};
}

void finish(const Layout& layout, NpyArray& array) {
  if (layout.fortran_order && array.shape.size() > 1) make_row_major(array, layout.element_size);
}

struct ZipCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, ZipCloser>;

[[noreturn]] void fail_archive(const std::string& name, zip_error_t& error) {
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail(name, "cannot be opened as an .npz archive: " + reason);
}

/// Opens an archive in memory. `bytes` must outlive it.
Archive open_archive(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) fail(name, "the file is empty");  // libzip would read an empty file as an archive without entries.
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) fail_archive(name, error);
  Archive archive(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive == nullptr) {
    zip_source_free(source);
    fail_archive(name, error);
  }
  zip_error_fini(&error);
  return archive;
}

Archive new_archive(const std::filesystem::path& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    fail_archive(path.string(), error);
  }
  return archive;
}

/// Throws Error if reading `size` bytes of an archive would exceed both 256 MiB and 200 times the size of the archive.
/// Zip compresses zeros a thousandfold, so an archive of a few megabytes could otherwise exhaust the memory.
void check_size(std::uint64_t size, std::size_t file_size, const std::string& name) {
  constexpr std::uint64_t always = std::uint64_t{256} << 20U;
  constexpr std::uint64_t factor = 200;
  const std::uint64_t most = std::max(always, factor * file_size);
  if (size > most) {
    fail(name, "the arrays need more than " + std::to_string(most) + " bytes, the limit for a compressed file of " +
                   std::to_string(file_size) + " bytes; save them uncompressed, with numpy.savez");
  }
}

constexpr std::string_view array_suffix = ".npy";

/// Reads an array of an archive. The header is read before memory for the data is allocated. `size` is the size
/// according to the archive's directory.
class EntryReader {
 public:
  EntryReader(zip_t* archive, zip_uint64_t index, std::uint64_t size, const std::string& name)
      : name_(name), file_(zip_fopen_index(archive, index, 0)), size_(size) {
    if (file_ == nullptr) fail(name, zip_strerror(archive));
  }

  /// Returns the type and shape of the array, without data.
  NpyArray read_header() {
    std::string start = read_some(version_end);
    const std::size_t end = npy_start(start, name_);
    if (end < start.size()) fail(name_, "its NumPy header is damaged");
    start += read_some(end - start.size());
    NpyArray array;
    layout_ = parse_layout(start, name_, array);
    if (end + layout_.bytes != size_) fail_size(name_, size_ - std::min<std::uint64_t>(end, size_));
    return array;
  }

  NpyArray read() {
    NpyArray array = read_header();
    array.data.reserve(layout_.bytes);
    while (array.data.size() < layout_.bytes) {
      const std::string piece = read_some(std::min(largest_piece, layout_.bytes - array.data.size()));
      if (piece.empty()) fail_size(name_, array.data.size());
      const auto* bytes = reinterpret_cast<const std::byte*>(piece.data());
      array.data.insert(array.data.end(), bytes, bytes + piece.size());
    }
    if (!read_some(1).empty()) fail_size(name_, layout_.bytes + 1);
    finish(layout_, array);
    return array;
  }

 private:
  static constexpr std::size_t largest_piece = 1U << 20U;

  /// Returns the next `size` bytes, or fewer at the end of the entry.
  std::string read_some(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t done = 0;
    while (done < size) {
      const zip_int64_t count = zip_fread(file_.get(), bytes.data() + done, size - done);
      if (count < 0) fail(name_, zip_file_strerror(file_.get()));
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    bytes.resize(done);
    return bytes;
  }

  const std::string& name_;
  std::unique_ptr<zip_file_t, ZipCloser> file_;
  std::uint64_t size_;
  Layout layout_;
};

}  // namespace

std::int64_t NpyArray::element_count() const { return byte_count(shape, 1).value_or(0); }

NpyArray parse_npy(std::string_view bytes, std::string_view name) {
  const std::size_t start = npy_start(bytes, name);
  if (bytes.size() < start) fail(name, "the .npy file is truncated");
  NpyArray array;
  const Layout layout = parse_layout(bytes.substr(0, start), name, array);
  const std::string_view data = bytes.substr(start);
  if (layout.bytes != data.size()) fail_size(name, data.size());
  const auto* first = reinterpret_cast<const std::byte*>(data.data());
  array.data.assign(first, first + data.size());
  finish(layout, array);
  return array;
}

std::string format_npy(const NpyArray& array) {
  const auto* entry = std::find_if(types.begin(), types.end(),
                                   [&](const TypeEntry& candidate) { return candidate.type == array.type; });
  if (entry == types.end())
    throw Error(Error::Kind::internal, "NumPy files cannot have elements of " + to_string(array.type));
  if (byte_count(array.shape, entry->size) != static_cast<std::int64_t>(array.data.size())) {
    throw Error(Error::Kind::internal,
                "an array's shape does not match its " + std::to_string(array.data.size()) + " bytes");
  }
  std::string header = "{'descr': '" + std::string(entry->descr) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : array.shape) header += std::to_string(extent) + ", ";
  header += "), }";
  constexpr std::size_t prefix = 10;
  constexpr std::size_t alignment = 64;  // The format requires that data begins at a multiple of 64 bytes.
  const std::size_t total = (prefix + header.size() + 1 + alignment - 1) / alignment * alignment;
  header.append(total - prefix - header.size() - 1, ' ');
  header += '\n';
  std::string bytes(magic);
  bytes += {'\1', '\0', static_cast<char>(header.size() & 0xFFU), static_cast<char>(header.size() >> 8U)};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(array.data.data()), array.data.size());
  return bytes;
}

NpyArray read_npy(const std::filesystem::path& path) {
  return parse_npy(onnx::MappedFile::open(path)->view(), path.string());
}

NpyArray read_npy_header(const std::filesystem::path& path) {
  const std::string name = path.string();
  constexpr std::size_t usual = 4096;
  std::string start = onnx::beginning_of_file(path, usual);
  if (start.empty()) return read_npy(path);  // the file is empty, or the message has the reason why it is not read
  const std::size_t end = npy_start(start, name);
  if (end > start.size()) start = onnx::beginning_of_file(path, end);
  if (start.size() < end) fail(name, "the .npy file is truncated");
  NpyArray array;
  const Layout layout = parse_layout(std::string_view(start).substr(0, end), name, array);
  const std::uintmax_t size = std::filesystem::file_size(path);
  if (size != end + layout.bytes) fail_size(name, size - std::min<std::uintmax_t>(size, end));
  return array;
}

void NpzFile::Closer::operator()(zip* archive) const { zip_discard(archive); }

NpzFile::NpzFile(const std::filesystem::path& path) : NpzFile(onnx::MappedFile::open(path), path.string()) {}

NpzFile::NpzFile(std::shared_ptr<const onnx::MappedFile> file, std::string name)
    : NpzFile(file->view(), std::move(name)) {
  file_ = std::move(file);
}

NpzFile::NpzFile(std::string_view bytes, std::string name)
    : name_(std::move(name)), file_size_(bytes.size()), archive_(open_archive(bytes, name_).release()) {
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0) {
      fail(name_, zip_strerror(archive_.get()));
    }
    if ((stat.valid & ZIP_STAT_NAME) == 0) fail(name_, "an entry of the archive has no name; the file is damaged");
    const std::string_view entry = stat.name;
    if (!entry.ends_with(array_suffix))
      fail(shown(entry), "this entry is not a .npy file; an .npz archive may contain only .npy files");
    if ((stat.valid & ZIP_STAT_SIZE) == 0)
      fail(shown(entry), "the archive does not state the size of this entry; the file is damaged");
    const std::string_view array = entry.substr(0, entry.size() - array_suffix.size());
    if (!entries_.try_emplace(std::string(array), Entry{static_cast<std::uint64_t>(i), stat.size}).second) {
      fail(shown(entry), "the archive has this entry twice");
    }
  }
}

std::string NpzFile::shown(std::string_view entry) const { return name_ + ": " + std::string(entry); }

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const NpzFile::Entry& NpzFile::find(std::string_view array) const {
  const auto found = entries_.find(array);
  if (found == entries_.end()) fail(name_, "the archive has no array " + std::string(array));
  return found->second;
}

NpyArray NpzFile::read_header(std::string_view array) const {
  const Entry& entry = find(array);
  const std::string what = shown(std::string(array).append(array_suffix));
  return EntryReader(archive_.get(), entry.index, entry.size, what).read_header();
}

NpyArray NpzFile::read(std::string_view array) const {
  const Entry& entry = find(array);
  const std::string what = shown(std::string(array).append(array_suffix));
  check_size(entry.size, file_size_, what);
  return EntryReader(archive_.get(), entry.index, entry.size, what).read();
}

NpzArrays NpzFile::read_all() const {
  std::uint64_t total = 0;
  for (const auto& [name, entry] : entries_) {
    if (__builtin_add_overflow(total, entry.size, &total)) total = std::numeric_limits<std::uint64_t>::max();
  }
  check_size(total, file_size_, name_);
  NpzArrays arrays;
  for (const auto& [name, entry] : entries_) arrays.emplace(name, read(name));
  return arrays;
}

NpzArrays read_npz(const std::filesystem::path& path) { return NpzFile(path).read_all(); }

NpzArrays parse_npz(std::string_view bytes, const std::string& name) { return NpzFile(bytes, name).read_all(); }

void write_npy(const std::filesystem::path& path, const NpyArray& array) { write_file(path, format_npy(array)); }

void write_npz(const std::filesystem::path& path, const NpzArrays& arrays) {
  if (arrays.empty()) fail(path.string(), "there are no arrays to write");
  // libzip writes to a temporary file in the folder of the archive. zip_close renames that file, which replaces a
  // symbolic link and does not follow it.
  check_replaceable(path);
  Archive archive = new_archive(path);
  std::vector<std::string> contents;  // libzip reads these bytes in zip_close.
  contents.reserve(arrays.size());
  for (const auto& [name, array] : arrays) {
    const std::string& bytes = contents.emplace_back(format_npy(array));
    zip_source_t* source = zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0);
    const zip_int64_t index =
        source == nullptr ? -1 : zip_file_add(archive.get(), (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      fail(path.string(), "cannot be written: " + std::string(zip_strerror(archive.get())));
    }
    // The default level takes four times as long (0.9 s for the counts of ResNet-50's calibration) and hardly shrinks
    // floating-point numbers. If setting the level fails, the file is still valid.
    constexpr zip_uint32_t fastest = 1;
    static_cast<void>(
        zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_DEFLATE, fastest));
    // libzip would store the current time, and two archives with equal arrays would differ. If setting the time fails,
    // the file is still valid.
    static_cast<void>(
        zip_file_set_dostime(archive.get(), static_cast<zip_uint64_t>(index), midnight, first_of_january_1980, 0));
  }
  if (zip_close(archive.get()) != 0) {
    fail(path.string(), "cannot be written: " + std::string(zip_strerror(archive.get())));
  }
  static_cast<void>(archive.release());  // zip_close has freed the archive.
}

}  // namespace graft::io
