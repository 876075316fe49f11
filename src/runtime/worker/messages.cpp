// Encodes the bodies of messages: 64-bit integers, and bytes preceded by their length.
#include "runtime/worker/messages.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "onnx/onnx_io.hpp"

namespace graft::runtime {
namespace {

/// The strings that mark_of() returns, in the order of the enumeration. They begin with a control character that no
/// other string in a message contains.
constexpr auto setting_marks = std::to_array<std::string_view>({
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) "\x1f" #setting "\x1f",
#include "graft/settings.inc"
#undef GRAFT_SETTING
});

std::string with_setting_names(std::string text) {
  for (std::size_t i = 0; i < setting_marks.size(); ++i) {
    const std::string_view mark = setting_marks.at(i);
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      const std::string_view name = setting_name(static_cast<Setting>(i));
      text.replace(at, mark.size(), name);
      at += name.size();
    }
  }
  return text;
}

/// The alignment of tensor elements in a body, in bytes. Elements are read in place, so the widest type must be
/// aligned.
constexpr std::size_t element_alignment = 16;

std::size_t padding_after(std::size_t size) {
  return (element_alignment - size % element_alignment) % element_alignment;
}

class BodyWriter {
 public:
  void number(std::uint64_t value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    body_.append(bytes, sizeof(value));
  }

  /// Appends the length of `value`, zeros up to the next multiple of element_alignment, and the bytes of `value`.
  /// `elsewhere` is the number of earlier bytes of the message that are not stored in this body.
  void bytes(std::string_view value, std::size_t elsewhere = 0) {
    number(value.size());
    align(elsewhere);
    body_ += value;
  }

  void align(std::size_t elsewhere) { body_.append(padding_after(body_.size() + elsewhere), '\0'); }
  [[nodiscard]] std::size_t size() const { return body_.size(); }

  /// Appends a model. Returns the folder with the model's files if the weights exceed `largest` bytes, otherwise null.
  std::unique_ptr<onnx::TemporaryFolder> model(const onnx::Model& model, std::size_t largest) {
    bytes(model.source);
    if (onnx::weight_bytes(model) <= largest) {
      bytes("");
      bytes(serialize_onnx(model));
      return nullptr;
    }
    auto folder = std::make_unique<onnx::TemporaryFolder>();
    const std::filesystem::path file = folder->path() / "model.onnx";
    (void)onnx::write_onnx(model, file, {.external_data = onnx::ExternalData::always});
    bytes(file.string());
    bytes("");
    return folder;
  }

  [[nodiscard]] std::string take() { return std::move(body_); }

 private:
  std::string body_;
};

class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : body_(body) {}
  explicit BodyReader(std::string body)
      : owner_(std::make_shared<const std::string>(std::move(body))), body_(*owner_) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view found = take(sizeof(value));
    std::memcpy(&value, found.data(), sizeof(value));
    return value;
  }

  /// Reads a number and throws Error if it is larger than `largest`.
  template <class T>
  T number_up_to(T largest) {
    const std::uint64_t value = number();
    if (value > static_cast<std::uint64_t>(largest))
      throw damaged(
          fmt::format("it contains the value {}, but the maximum is {}", value, static_cast<std::uint64_t>(largest)));
    return static_cast<T>(value);
  }

  std::string_view bytes() {
    const std::uint64_t size = number();
    (void)take(padding_after(place_));
    return take(size);
  }

  std::string text() { return std::string(bytes()); }

  onnx::Model model() {
    std::string source = text();
    const std::string file = text();
    const std::string_view content = bytes();
    if (file.empty()) return onnx::parse_onnx(content, {}, std::move(source), owner_);
    onnx::Model model = onnx::read_onnx(file);
    model.source = std::move(source);
    return model;
  }

  TensorMap tensors() {
    TensorMap tensors;
    for (std::uint64_t left = number(); left != 0; --left) {
      std::string name = text();
      onnx::TensorData tensor;
      tensor.type = number_up_to(onnx::ElementType{std::numeric_limits<std::int32_t>::max()});
      for (std::uint64_t dims = number(); dims != 0; --dims) {
        tensor.dims.push_back(number_up_to(std::numeric_limits<std::int64_t>::max()));
      }
      const std::string_view data = bytes();
      check_size(name, tensor, data.size());
      tensor.bytes = onnx::Bytes(owner_, std::span(data));
      tensors.insert_or_assign(std::move(name), std::move(tensor));
    }
    return tensors;
  }

  void end() const {
    if (place_ != body_.size()) throw damaged(fmt::format("it has {} bytes too many", body_.size() - place_));
  }

 private:
  [[nodiscard]] static Error damaged(const std::string& what) {
    return {Error::Kind::internal, "a message between Graft and the worker is damaged: " + what};
  }

  std::string_view take(std::uint64_t size) {
    if (size > body_.size() - place_) {
      throw damaged(fmt::format("it needs {} more bytes, and {} are left", size, body_.size() - place_));
    }
    const std::string_view found = body_.substr(place_, static_cast<std::size_t>(size));
    place_ += found.size();
    return found;
  }

  /// Throws Error if the number of bytes does not match the element count. A tensor of strings has no bytes here: every
  /// engine refuses its type.
  static void check_size(const std::string& name, const onnx::TensorData& tensor, std::size_t size) {
    constexpr std::int64_t byte = 8;
    const std::int64_t count = tensor.element_count();
    const int bits = bits_of(tensor.type);
    const bool fits = bits < byte ? std::cmp_equal(size, count / byte * bits + (count % byte * bits + byte - 1) / byte)
                                  : size % static_cast<std::size_t>(bits / byte) == 0 &&
                                        std::cmp_equal(size / static_cast<std::size_t>(bits / byte), count);
    if (!fits)
      throw damaged(
          fmt::format("tensor '{}' has {} bytes for {} elements of {}", name, size, count, to_string(tensor.type)));
  }

  std::shared_ptr<const std::string> owner_;
  std::string_view body_;
  std::size_t place_ = 0;
};

}  // namespace

std::string encode(const Greeting& greeting) {
  BodyWriter body;
  body.number(greeting.version);
  body.bytes(greeting.engine);
  return body.take();
}

std::string_view mark_of(Setting setting) { return setting_marks.at(static_cast<std::size_t>(setting)); }

std::string encode(const Failure& failure) {
  BodyWriter body;
  body.number(static_cast<std::uint64_t>(failure.kind));
  body.bytes(failure.text);
  body.number(failure.is_engine_limit ? 1 : 0);
  return body.take();
}

ModelMessage encode(const onnx::Model& model, std::size_t largest) {
  BodyWriter body;
  std::unique_ptr<onnx::TemporaryFolder> files = body.model(model, largest);
  return {body.take(), std::move(files)};
}

ModelMessage encode(const onnx::Model& model, const CompileOptions& options, std::size_t largest) {
  BodyWriter body;
  body.number(static_cast<std::uint64_t>(options.kernels));
  body.number(options.extra_outputs.size());
  for (const std::string& name : options.extra_outputs) body.bytes(name);
  body.number(static_cast<std::uint64_t>(options.threads));
  body.number(static_cast<std::uint64_t>(options.streams));
  body.number(options.round_inside ? 1 : 0);
  std::unique_ptr<onnx::TemporaryFolder> files = body.model(model, largest);
  return {body.take(), std::move(files)};
}

TensorMessage::TensorMessage(const TensorMap& tensors) {
  BodyWriter writer;
  std::vector<std::size_t> ends;  // offsets at which headers end; the elements of a tensor follow each
  std::size_t elements = 0;       // the bytes of the elements of all tensors so far
  writer.number(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    writer.bytes(name, elements);
    writer.number(static_cast<std::uint64_t>(tensor.type));
    writer.number(tensor.dims.size());
    for (const std::int64_t dim : tensor.dims) writer.number(static_cast<std::uint64_t>(dim));
    writer.number(tensor.bytes.size());
    writer.align(elements);
    ends.push_back(writer.size());
    elements += tensor.bytes.size();
  }
  headers_ = writer.take();
  std::size_t begin = 0;
  auto end = ends.begin();
  for (const auto& [name, tensor] : tensors) {
    parts_.push_back(std::string_view(headers_).substr(begin, *end - begin));
    parts_.push_back(tensor.bytes.view());
    begin = *end++;
  }
  parts_.push_back(std::string_view(headers_).substr(begin));
}

Greeting decode_greeting(std::string_view body) {
  BodyReader reader(body);
  Greeting greeting;
  greeting.version = reader.number();
  // Another version may continue with a different layout.
  if (greeting.version != protocol_version) return greeting;
  greeting.engine = reader.text();
  reader.end();
  return greeting;
}

Failure decode_failure(std::string_view body) {
  BodyReader reader(body);
  Failure failure;
  failure.kind = reader.number_up_to(Error::Kind::internal);
  failure.text = with_setting_names(reader.text());
  failure.is_engine_limit = reader.number() != 0;
  reader.end();
  return failure;
}

onnx::Model decode_model(std::string body) {
  BodyReader reader(std::move(body));
  onnx::Model model = reader.model();
  reader.end();
  return model;
}

ModelToCompile decode_compile(std::string body) {
  BodyReader reader(std::move(body));
  ModelToCompile result;
  result.options.kernels = reader.number_up_to(OperatorKernels::own_in_f32);
  for (std::uint64_t left = reader.number(); left != 0; --left) result.options.extra_outputs.push_back(reader.text());
  result.options.threads = reader.number_up_to(std::numeric_limits<int>::max());
  result.options.streams = reader.number_up_to(std::numeric_limits<int>::max());
  result.options.round_inside = reader.number_up_to(1) == 1;
  result.model = reader.model();
  reader.end();
  return result;
}

TensorMap decode_tensors(std::string body) {
  BodyReader reader(std::move(body));
  TensorMap tensors = reader.tensors();
  reader.end();
  return tensors;
}

}  // namespace graft::runtime
