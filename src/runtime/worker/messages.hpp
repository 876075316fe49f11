// What Graft and a worker say to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/error.hpp"
#include "onnx/model.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/temporary_folder.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// To be raised when a message changes: a worker of another version is refused.
inline constexpr std::uint64_t protocol_version = 4;

/// A connection serves one request at a time, and holds one compiled model at most. What is asked is answered with
/// `done` or `failed`; the worker says `greeting` first, on the connection that it was started with, or `failed` and
/// ends.
enum class MessageKind : std::uint32_t {
  greeting = 1,  ///< Greeting.
  done,          ///< Of compile and open: nothing; of run and evaluate: the outputs.
  failed,        ///< Failure.
  open,          ///< With a socket: serve it too, with a request of its own for the compiled model, if there is one.
  compile,       ///< ModelToCompile.
  evaluate,      ///< ModelToEvaluate.
  run,           ///< The inputs, a TensorMap.
};

struct Greeting {
  std::uint64_t version = protocol_version;
  std::string engine;
};

/// Why something was not done: an Error's parts.
struct Failure {
  Error::Kind kind = Error::Kind::internal;
  std::string text;
  bool is_engine_limit = false;  ///< The Error is an EngineLimit.
};

struct ModelToCompile {
  onnx::Model model;
  CompileOptions options;
};

[[nodiscard]] std::string encode(const Greeting& greeting);
[[nodiscard]] std::string encode(const Failure& failure);

/// A message with a model. Where the weights take more than `largest` bytes, the message names a file
/// that holds the model, since protobuf allows 2 GiB. The worker has read it when it answers.
struct ModelMessage {
  std::string body;
  std::unique_ptr<onnx::TemporaryFolder> files;
};
/// For `evaluate` and for `compile`. They throw Error where a file cannot be written.
[[nodiscard]] ModelMessage encode(const onnx::Model& model, std::size_t largest = onnx::largest_serialized_weights);
[[nodiscard]] ModelMessage encode(const onnx::Model& model, const CompileOptions& options,
                                  std::size_t largest = onnx::largest_serialized_weights);

/// A message with tensors, whose elements are sent from where they are: the tensors have to stay until then.
class TensorMessage {
 public:
  explicit TensorMessage(const TensorMap& tensors);
  TensorMessage(const TensorMessage&) = delete;  // the parts point into it
  TensorMessage& operator=(const TensorMessage&) = delete;
  [[nodiscard]] std::span<const std::string_view> parts() const { return parts_; }

 private:
  std::string headers_;  ///< Everything but the elements.
  std::vector<std::string_view> parts_;
};

/// They throw Error (internal) for a body that does not hold what it should: every length is compared with what is left
/// before it is believed. Weights and tensors are parts of the body, or of a mapped file, and keep it alive.
[[nodiscard]] Greeting decode_greeting(std::string_view body);
[[nodiscard]] Failure decode_failure(std::string_view body);
[[nodiscard]] onnx::Model decode_model(std::string body);
[[nodiscard]] ModelToCompile decode_compile(std::string body);
[[nodiscard]] TensorMap decode_tensors(std::string body);

}  // namespace graft::runtime
