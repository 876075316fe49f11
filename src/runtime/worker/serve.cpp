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

/// Serves requests until the peer is gone. `request` is the model that the connection runs first, or null if none was
/// compiled yet. Damaged bytes cause an exception, which is not caught, so that the process ends.
void serve_connection(const Engine& engine, Connection connection, std::unique_ptr<CompiledModel> request);

/// Calls `answer`, which sends a message, or sends the Error that `answer` throws. Returns false if the peer is gone.
template <class Answer>
bool reply(Connection& connection, const Answer& answer) {
  Failure failure;
  try {
    return answer();
  } catch (const EngineLimit& limit) {
    failure = {limit.kind(), limit.what(), true};
  } catch (const Error& refused) {
    failure = {refused.kind(), refused.what()};
  } catch (const std::exception& failed) {
    failure = {Error::Kind::internal, failed.what()};
  }
  return connection.send(static_cast<std::uint32_t>(MessageKind::failed), encode(failure));
}

bool answer(const Engine& engine, Connection& connection, std::unique_ptr<CompiledModel>& request, Message message) {
  constexpr auto done = static_cast<std::uint32_t>(MessageKind::done);
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::open: {
      std::unique_ptr<CompiledModel> other = request ? request->new_request() : nullptr;
      std::thread(serve_connection, std::cref(engine), Connection(std::move(message.attached)), std::move(other))
          .detach();
      return connection.send(done, "");
    }
    case MessageKind::compile: {
      const ModelToCompile given = decode_compile(std::move(message.body));
      request = engine.compile(given.model, given.options);
      return connection.send(done, "");
    }
    case MessageKind::evaluate: {
      const TensorMap outputs = engine.evaluate_constant_graph(decode_model(std::move(message.body)));
      return connection.send(done, TensorMessage(outputs).parts());
    }
    case MessageKind::run: {
      if (!request) break;
      const TensorMap inputs = decode_tensors(std::move(message.body));
      bool sent = false;
      request->run(inputs,
                   [&](const TensorMap& outputs) { sent = connection.send(done, TensorMessage(outputs).parts()); });
      return sent;
    }
    default: break;
  }
  throw Error(Error::Kind::internal, fmt::format("the worker cannot answer a message of kind {} here", message.kind));
}

void serve_connection(const Engine& engine, Connection connection, std::unique_ptr<CompiledModel> request) {
  for (std::optional<Message> message = connection.receive(); message; message = connection.receive()) {
    if (!reply(connection, [&] { return answer(engine, connection, request, std::move(*message)); })) return;
  }
}

}  // namespace

void serve(const std::function<const Engine&()>& make_engine, Descriptor socket) {
  Connection root(std::move(socket));
  const Engine* engine = nullptr;
  const auto greet = [&] {
    engine = &make_engine();
    const Greeting greeting{.version = protocol_version, .engine = std::string(engine->name())};
    return root.send(static_cast<std::uint32_t>(MessageKind::greeting), encode(greeting));
  };
  if (!reply(root, greet) || engine == nullptr) return;
  serve_connection(*engine, std::move(root), nullptr);
}

}  // namespace graft::runtime
