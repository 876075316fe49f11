// Answers requests, one at a time on each connection.
#include "runtime/worker/serve.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "graft/error.hpp"
#include "runtime/engine_limit.hpp"
#include "runtime/worker/connection.hpp"
#include "runtime/worker/messages.hpp"

namespace graft::runtime {
namespace {

/// What damaged bytes make it throw is not caught: the process ends.
void serve_connection(const Engine& engine, Connection connection, std::unique_ptr<CompiledModel> request);

/// Sends a thrown Error, or `done` with what `answer` returns. False where the peer is gone.
template <class Answer>
bool reply(Connection& connection, const Answer& answer) {
  Failure failure;
  try {
    return connection.send(static_cast<std::uint32_t>(MessageKind::done), answer());
  } catch (const EngineLimit& limit) {
    failure = {limit.kind(), limit.what(), true};
  } catch (const Error& refused) {
    failure = {refused.kind(), refused.what()};
  } catch (const std::exception& failed) {
    failure = {Error::Kind::internal, failed.what()};
  }
  return connection.send(static_cast<std::uint32_t>(MessageKind::failed), encode(failure));
}

std::string answer(const Engine& engine, std::unique_ptr<CompiledModel>& request, Message message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::open: {
      std::unique_ptr<CompiledModel> other = request ? request->new_request() : nullptr;
      std::thread(serve_connection, std::cref(engine), Connection(std::move(message.attached)), std::move(other))
          .detach();
      return {};
    }
    case MessageKind::compile: {
      const ModelToCompile given = decode_compile(std::move(message.body));
      request = engine.compile(given.model, given.options);
      return {};
    }
    case MessageKind::evaluate: return encode(engine.evaluate_constant_graph(decode_model(std::move(message.body))));
    case MessageKind::run: {
      if (!request) break;
      const TensorMap inputs = decode_tensors(std::move(message.body));
      std::string outputs;
      request->run(inputs, [&](const TensorMap& tensors) { outputs = encode(tensors); });
      return outputs;
    }
    default: break;
  }
  throw Error(Error::Kind::internal, fmt::format("the worker cannot answer a message of kind {} here", message.kind));
}

void serve_connection(const Engine& engine, Connection connection, std::unique_ptr<CompiledModel> request) {
  for (std::optional<Message> message = connection.receive(); message; message = connection.receive()) {
    if (!reply(connection, [&] { return answer(engine, request, std::move(*message)); })) return;
  }
}

}  // namespace

void serve(const Engine& engine, Descriptor socket) {
  Connection root(std::move(socket));
  const Greeting greeting{.version = protocol_version, .engine = std::string(engine.name())};
  if (!root.send(static_cast<std::uint32_t>(MessageKind::greeting), encode(greeting))) return;
  serve_connection(engine, std::move(root), nullptr);
}

}  // namespace graft::runtime
