// Starts the worker process and sends requests to it. Each compiled model has its own connection, so that several
// models run at the same time.
#include "runtime/worker/worker_engine.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/descriptor.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "runtime/engine_limit.hpp"
#include "runtime/keeps_outputs.hpp"
#include "runtime/worker/connection.hpp"
#include "runtime/worker/idle_watch.hpp"
#include "runtime/worker/messages.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace graft::runtime {
namespace {

const std::string& name_of(const WorkerCommand& command) {
  return command.name.empty() ? command.arguments.front() : command.name;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The worker's process, whose standard input is the socket. Its standard output is redirected to standard error,
/// because standard output is for results.
class Process {
 public:
  Process(const WorkerCommand& command, int socket) : idle_limit_s_(command.idle_limit_s) {
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    // The worker gets its own process group. Ctrl-C then reaches only this process, and the worker ends when its socket
    // closes.
    ::posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    WorkerCommand texts = command;
    std::vector<char*> own_environment = pointers_to(texts.environment);
    const int failed = ::posix_spawn(&child_, command.arguments.front().c_str(), &actions, &attributes,
                                     pointers_to(texts.arguments).data(),
                                     texts.environment.empty() ? environ : own_environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (failed != 0) {
      throw Error(Error::Kind::missing_tool, fmt::format("{}: the CPU engine's worker cannot be started: {}",
                                                         name_of(command), std::generic_category().message(failed)));
    }
  }
  ~Process() {
    if (is_ours()) (void)end();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Returns whether this process started the worker. False in a process that was forked later.
  [[nodiscard]] bool is_ours() const { return ::getpid() == parent_; }

  /// Returns the function that watches one wait of a connection, and kills a process that hangs.
  [[nodiscard]] Connection::GivesUp begin_wait() {
    return [this, watch = IdleWatch(child_, idle_limit_s_)]() mutable {
      if (!watch.is_hanging()) return false;
      (void)end(fmt::format("used no processor time for {} s and was killed", idle_limit_s_));
      return true;
    };
  }

  /// Kills the process unless it has ended, and returns how it ended, such as "ended by signal 9". Returns `why`
  /// instead if it is not empty. Later calls return the result of the first call.
  [[nodiscard]] std::string end(std::string why = {}) {
    const std::scoped_lock lock(mutex_);
    if (end_.empty()) {
      ::kill(child_, SIGKILL);  // A process that has already ended keeps its own status.
      int status = 0;
      ::pid_t found = -1;
      do {
        found = ::waitpid(child_, &status, 0);
      } while (found < 0 && errno == EINTR);
      if (!why.empty()) {
        end_ = std::move(why);
      } else if (found < 0) {
        end_ = "ended";
      } else if (WIFSIGNALED(status)) {
        end_ = fmt::format("ended by signal {}", WTERMSIG(status));
      } else {
        end_ = fmt::format("ended with exit code {}", WEXITSTATUS(status));
      }
    }
    return end_;
  }

 private:
  const ::pid_t parent_ = ::getpid();
  const int idle_limit_s_;
  ::pid_t child_ = 0;
  std::mutex mutex_;
  std::string end_;
};

/// A worker that has sent its greeting. It closes a connection only when it ends.
class Worker {
 public:
  explicit Worker(const WorkerCommand& command) : Worker(command, Connection::make_sockets()) {}

  [[nodiscard]] const std::string& engine() const { return engine_; }
  [[nodiscard]] bool is_ours() const { return process_.is_ours(); }
  [[nodiscard]] std::string end() { return process_.end(); }

  /// Returns a connection without a model, or nothing if the worker has ended.
  [[nodiscard]] std::optional<Connection> open() {
    const std::scoped_lock lock(mutex_);
    auto [ours, theirs] = Connection::make_sockets();
    if (!root_.send(static_cast<std::uint32_t>(MessageKind::open), "", theirs.get()) || !root_.receive()) {
      return std::nullopt;
    }
    return connect(std::move(ours));
  }

  /// Returns a connection to the worker over this socket, with a limit on each wait.
  [[nodiscard]] Connection connect(Descriptor socket) {
    return Connection(std::move(socket), [this] { return process_.begin_wait(); });
  }

 private:
  Worker(const WorkerCommand& command, std::pair<Descriptor, Descriptor> sockets)
      : process_(command, sockets.second.get()), root_(connect(std::move(sockets.first))) {
    sockets.second.close();
    const auto fail = [&](const std::string& why) {
      throw Error(Error::Kind::missing_tool,
                  fmt::format("{} is not a worker of the CPU engine: {}", name_of(command), why));
    };
    const std::optional<Message> said = root_.receive();
    if (!said) {
      const std::string how = end();
      check_open_files(how);
      fail("it " + how);
    }
    if (said->kind == static_cast<std::uint32_t>(MessageKind::failed)) {
      const Failure failure = decode_failure(said->body);
      throw Error(failure.kind, failure.text);
    }
    if (said->kind != static_cast<std::uint32_t>(MessageKind::greeting)) fail("it sent no greeting");
    const Greeting greeting = decode_greeting(said->body);
    if (greeting.version != protocol_version) {
      fail(fmt::format("it uses version {} of the protocol, and this Graft needs version {}\nBuild the worker again",
                       greeting.version, protocol_version));
    }
    engine_ = greeting.engine;
  }

  /// Throws an Error if the limit of open files is low. That is the likely cause when a worker ends while it starts,
  /// and the worker cannot report it. `how` says how the worker ended, for the message.
  static void check_open_files(const std::string& how) {
    constexpr ::rlim_t enough = 64;
    struct ::rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= enough) return;
    throw Error(
        fmt::format("the CPU engine's worker {} while it started; the limit of open files of this process is {}\nRaise "
                    "the limit with `ulimit -n 1024`, and run the command again",
                    how, limit.rlim_cur));
  }

  Process process_;
  std::mutex mutex_;  ///< Protects root_.
  Connection root_;
  std::string engine_;
};

/// A model that is compiled in the worker.
class RemoteModel final : public CompiledModel, public KeepsOutputs {
 public:
  RemoteModel(std::shared_ptr<Worker> worker, Connection connection, std::string source)
      : worker_(std::move(worker)), connection_(std::move(connection)), source_(std::move(source)) {}

  [[nodiscard]] std::unique_ptr<CompiledModel> new_request() const override;
  using CompiledModel::run;
  void run(const TensorMap& inputs, const std::function<void(const TensorMap&)>& look) override {
    look(run_and_keep(inputs));
  }
  /// Runs the model. The outputs own the message in which they arrived.
  [[nodiscard]] TensorMap run_and_keep(const TensorMap& inputs) override {
    return decode_tensors(ask(MessageKind::run, TensorMessage(inputs).parts(), "ran"));
  }

  std::string ask(MessageKind kind, std::string_view body, std::string_view act, int attached = -1) const {
    return ask(kind, std::span(&body, 1), act, attached);
  }

  /// Sends a request with this body, and with the file descriptor `attached` unless it is -1. Returns the body of the
  /// reply. Throws the Error that the worker reports. `act` is the participle for messages ("compiled").
  std::string ask(MessageKind kind, std::span<const std::string_view> body, std::string_view act,
                  int attached = -1) const {
    if (!worker_->is_ours()) {
      throw Error(fmt::format(
          "{}: the model was compiled before this process was forked\nCompile the model after the fork", source_));
    }
    if (connection_.is_stopped()) throw Stopped{};
    std::optional<Message> answer;
    if (connection_.send(static_cast<std::uint32_t>(kind), body, attached)) answer = connection_.receive();
    if (connection_.is_stopped()) throw Stopped{};
    if (!answer) {
      throw EngineLimit(fmt::format("{}: the process of {} {} while it {} this model", source_, worker_->engine(),
                                    worker_->end(), act));
    }
    if (answer->kind == static_cast<std::uint32_t>(MessageKind::failed)) {
      const Failure failure = decode_failure(answer->body);
      if (failure.is_engine_limit) throw EngineLimit(failure.text);
      throw Error(failure.kind, failure.text);
    }
    return std::move(answer->body);
  }

 private:
  std::shared_ptr<Worker> worker_;
  mutable Connection connection_;
  std::string source_;
};

std::unique_ptr<CompiledModel> RemoteModel::new_request() const {
  auto [ours, theirs] = Connection::make_sockets();
  (void)ask(MessageKind::open, "", "prepared another run of", theirs.get());
  Connection connection = worker_->connect(std::move(ours));
  connection.set_should_stop(connection_.should_stop());
  return std::make_unique<RemoteModel>(worker_, std::move(connection), source_);
}

class WorkerEngine final : public Engine {
 public:
  explicit WorkerEngine(std::function<WorkerCommand()> find) : find_(std::move(find)) {}

  [[nodiscard]] std::string_view name() const override {
    const std::string& engine = current()->engine();
    const std::scoped_lock lock(mutex_);
    name_ = engine;  // The name is constant unless the program was replaced.
    return name_;
  }

  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& model,
                                                       const CompileOptions& options) const override {
    const ModelMessage message = encode(model, options);
    std::unique_ptr<RemoteModel> remote = connect(model.source, options.should_stop);
    (void)remote->ask(MessageKind::compile, message.body, "compiled");
    return remote;
  }

  [[nodiscard]] TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    const ModelMessage message = encode(model);
    return decode_tensors(connect(model.source)->ask(MessageKind::evaluate, message.body, "computed"));
  }

 private:
  /// Returns the worker. Starts a new one if there is no worker, if it belongs to the process from which this one was
  /// forked, or if an operator library was loaded since it started. Models that an earlier worker compiled keep that
  /// worker.
  [[nodiscard]] std::shared_ptr<Worker> current() const {
    const std::scoped_lock lock(mutex_);
    const std::size_t libraries = operator_libraries().size();
    if (worker_ == nullptr || !worker_->is_ours() || libraries != libraries_) {
      worker_ = std::make_shared<Worker>(find_());
      libraries_ = libraries;
    }
    return worker_;
  }

  void forget(const std::shared_ptr<Worker>& ended) const {
    const std::scoped_lock lock(mutex_);
    if (worker_ == ended) worker_ = nullptr;
  }

  /// Returns a connection on which no model was compiled yet. Starts a new worker if the last one has ended. `source`
  /// is the model's file, for messages. `should_stop` is passed to Connection::set_should_stop.
  [[nodiscard]] std::unique_ptr<RemoteModel> connect(const std::string& source,
                                                     const std::function<bool()>& should_stop = {}) const {
    std::shared_ptr<Worker> worker = current();
    std::optional<Connection> connection = worker->open();
    if (!connection) {
      forget(worker);
      worker = current();
      connection = worker->open();
    }
    if (!connection) {
      throw EngineLimit(fmt::format("{}: the process of {} {} twice", source, worker->engine(), worker->end()));
    }
    connection->set_should_stop(should_stop);
    return std::make_unique<RemoteModel>(std::move(worker), std::move(*connection), source);
  }

  std::function<WorkerCommand()> find_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Worker> worker_;
  mutable std::size_t libraries_ = 0;  ///< The number of operator libraries that were loaded when worker_ was started.
  mutable std::string name_;
};

}  // namespace

std::unique_ptr<Engine> make_worker_engine(std::string program) {
  return make_worker_engine([program = std::move(program)] {
    WorkerCommand command{.arguments = {program}};
    for (const OperatorLibrary& library : operator_libraries()) command.arguments.push_back(library.file);
    return command;
  });
}

std::unique_ptr<Engine> make_worker_engine(std::function<WorkerCommand()> find) {
  return std::make_unique<WorkerEngine>(std::move(find));
}

}  // namespace graft::runtime
