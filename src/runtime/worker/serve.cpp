// Answers requests, one at a time on each connection.
#include "runtime/worker/serve.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "graft/error.hpp"
#include "runtime/worker/connection.hpp"
#include "runtime/worker/messages.hpp"

namespace graft::runtime {
namespace {

/// The draw of a compiled model, which all requests for it share.
class SharedDraw {
 public:
  explicit SharedDraw(std::shared_ptr<RoundingNoise> noise) : noise_(std::move(noise)) {}

  /// Runs that go on at the same time have the same draw, so none sees it change.
  void set(std::uint64_t draw) {
    const std::scoped_lock lock(mutex_);
    if (noise_ && noise_->draw != draw) noise_->draw = draw;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<RoundingNoise> noise_;
};

struct Request {
  std::unique_ptr<CompiledModel> model;
  std::shared_ptr<SharedDraw> draw;
};

/// What damaged bytes make it throw is not caught: the process ends.
void serve_connection(const Engine& engine, Connection connection, Request request);

/// Sends a thrown Error, or `done` with what `answer` returns. False where the peer is gone.
template <class Answer>
bool reply(Connection& connection, const Answer& answer) {
  Failure failure;
  try {
    return connection.send(static_cast<std::uint32_t>(MessageKind::done), answer());
  } catch (const Error& refused) {
    failure = {refused.kind(), refused.what()};
  } catch (const std::exception& failed) {
    failure = {Error::Kind::internal, failed.what()};
  }
  return connection.send(static_cast<std::uint32_t>(MessageKind::failed), encode(failure));
}

std::string answer(const Engine& engine, Request& request, Message message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::open: {
      Request other{request.model ? request.model->new_request() : nullptr, request.draw};
      std::thread(serve_connection, std::cref(engine), Connection(std::move(message.attached)), std::move(other))
          .detach();
      return {};
    }
    case MessageKind::compile: {
      const ModelToCompile given = decode_compile(std::move(message.body));
      request.model = engine.compile(given.model, given.options);
      request.draw = std::make_shared<SharedDraw>(given.options.noise);
      return {};
    }
    case MessageKind::evaluate: return encode(engine.evaluate_constant_graph(decode_model(std::move(message.body))));
    case MessageKind::run: {
      if (!request.model) break;
      const RunInputs given = decode_run(std::move(message.body));
      request.draw->set(given.draw);
      std::string outputs;
      request.model->run(given.tensors, [&](const TensorMap& tensors) { outputs = encode(tensors); });
      return outputs;
    }
    default: break;
  }
  throw Error(Error::Kind::internal, fmt::format("the worker cannot answer a message of kind {} here", message.kind));
}

void serve_connection(const Engine& engine, Connection connection, Request request) {
  for (std::optional<Message> message = connection.receive(); message; message = connection.receive()) {
    if (!reply(connection, [&] { return answer(engine, request, std::move(*message)); })) return;
  }
}

}  // namespace

void serve(const Engine& engine, Descriptor socket) {
  Connection root(std::move(socket));
  const Greeting greeting{.version = protocol_version, .engine = std::string(engine.name())};
  if (!root.send(static_cast<std::uint32_t>(MessageKind::greeting), encode(greeting))) return;
  serve_connection(engine, std::move(root), {});
}

}  // namespace graft::runtime
