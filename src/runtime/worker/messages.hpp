// The messages between Graft and a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/model.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/temporary_folder.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// The version of the protocol, which must be raised whenever a message changes. A worker of another version is
/// refused.
inline constexpr std::uint64_t protocol_version = 4;

/// The kind of a message. A connection serves one request at a time and holds at most one compiled model. The worker
/// replies to each request with `done` or `failed`. It first sends `greeting` on the connection with which it was
/// started, or sends `failed` and ends.
enum class MessageKind : std::uint32_t {
  greeting = 1,  ///< The body is a Greeting.
  /// The request succeeded. The body is empty for `compile` and `open`, and contains the outputs (TensorMap) for `run`
  /// and `evaluate`.
  done,
  failed,  ///< The request failed. The body is a Failure.
  /// Carries another socket, which the worker serves too. If a model is compiled, the socket gets a separate request of
  /// this model.
  open,
  compile,   ///< The body is a ModelToCompile.
  evaluate,  ///< The body is an onnx::Model to evaluate.
  run,       ///< The body contains the inputs (TensorMap).
};

struct Greeting {
  std::uint64_t version = protocol_version;
  std::string engine;
};

/// The reason why a request failed: the kind and the text of the Error that the worker caught.
struct Failure {
  Error::Kind kind = Error::Kind::internal;
  std::string text;
  bool is_engine_limit = false;  ///< Whether the Error is an EngineLimit.
};

struct ModelToCompile {
  onnx::Model model;
  CompileOptions options;
};

/// Returns a mark that stands for the name of a setting in the messages of a worker. The worker calls
/// set_setting_names(mark_of), and decode_failure() replaces each mark with the setting_name() of its own process.
[[nodiscard]] std::string_view mark_of(Setting setting);

[[nodiscard]] std::string encode(const Greeting& greeting);
[[nodiscard]] std::string encode(const Failure& failure);

/// A message with a model. If the weights take more than `largest` bytes, the message names a file that contains the
/// model, because protobuf is limited to 2 GiB. When the worker replies, it has read the file.
struct ModelMessage {
  std::string body;
  std::unique_ptr<onnx::TemporaryFolder> files;
};
/// Returns the message for `evaluate` (without options) or `compile`. If the weights take more than `largest` bytes,
/// writes the model to a file. Throws Error if the file cannot be written.
[[nodiscard]] ModelMessage encode(const onnx::Model& model, std::size_t largest = onnx::largest_serialized_weights);
[[nodiscard]] ModelMessage encode(const onnx::Model& model, const CompileOptions& options,
                                  std::size_t largest = onnx::largest_serialized_weights);

/// A message with tensors. The elements are sent from where they are in memory, so the tensors must live until the
/// message is sent.
class TensorMessage {
 public:
  explicit TensorMessage(const TensorMap& tensors);
  TensorMessage(const TensorMessage&) = delete;  // parts_ points into headers_
  TensorMessage& operator=(const TensorMessage&) = delete;
  [[nodiscard]] std::span<const std::string_view> parts() const { return parts_; }

 private:
  std::string headers_;  ///< All bytes except the elements of the tensors.
  std::vector<std::string_view> parts_;
};

/// The decode functions throw Error (internal) for a malformed body: every length is compared with the remaining bytes
/// before it is used. Weights and tensors point into the body, or into a mapped file, and keep it alive.
[[nodiscard]] Greeting decode_greeting(std::string_view body);
[[nodiscard]] Failure decode_failure(std::string_view body);
[[nodiscard]] onnx::Model decode_model(std::string body);
[[nodiscard]] ModelToCompile decode_compile(std::string body);
[[nodiscard]] TensorMap decode_tensors(std::string body);

}  // namespace graft::runtime
