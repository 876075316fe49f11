// Runs a child process with posix_spawn, writes to its input, and reads its two outputs with poll.
#include "engine/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <system_error>
#include <thread>

#include "core/descriptor.hpp"
#include "core/descriptor_error.hpp"
#include "graft/error.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace graft::engine {
namespace {

constexpr int poll_milliseconds = 100;
/// The time after SIGTERM at which a child process that has not ended receives SIGKILL.
constexpr std::chrono::seconds patience{5};
/// The time for which the output pipes are still read after the child process has ended.
constexpr std::chrono::seconds afterwards{1};

/// A pipe from the child process whose text is passed to a callback line by line, and the incomplete last line.
struct Stream {
  Descriptor reader;
  Descriptor writer;
  std::string pending;
  const std::function<void(std::string_view)>* on_line = nullptr;

  explicit Stream(const std::function<void(std::string_view)>& callback) : on_line(&callback) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw error_of_descriptors("a pipe", errno);
    }
    reader = Descriptor(ends[0]);
    writer = Descriptor(ends[1]);
  }

  void emit(std::string_view line) const {
    if (*on_line) (*on_line)(line);
  }

  /// Passes the remaining text to the callback as the last line, if it does not end with a newline.
  void finish() {
    if (!pending.empty()) emit(pending);
    pending.clear();
  }

  /// Reads the available text and passes complete lines to the callback. Returns false at the end of the stream.
  bool read_some() {
    std::array<char, 65536> buffer{};
    const ::ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    if (count == 0) {
      finish();
      return false;
    }
    pending.append(buffer.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n', begin)) {
      emit(std::string_view(pending).substr(begin, end - begin));
      begin = end + 1;
    }
    pending.erase(0, begin);
    return true;
  }
};

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Owns the file actions and attributes that posix_spawn needs to start the child.
class SpawnOptions {
 public:
  SpawnOptions(int input, int output, int error) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, error, STDERR_FILENO);
    // The child gets its own process group. Ctrl-C then reaches only this process, which ends the child.
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::sigset_t defaults;
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGINT);
    ::sigaddset(&defaults, SIGTERM);
    // A child of a process that ignores SIGCHLD could not wait for its own children.
    ::sigaddset(&defaults, SIGCHLD);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnOptions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
  [[nodiscard]] const ::posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const ::posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  ::posix_spawn_file_actions_t actions_{};
  ::posix_spawnattr_t attributes_{};
};

/// Returns the exit code or signal of the child, or nothing while it runs.
std::optional<ProcessResult> end_of(::pid_t child) {
  int status = 0;
  const ::pid_t found = ::waitpid(child, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return std::nullopt;
  ProcessResult result;
  if (found < 0) return result;  // Another part of this process has already waited for the child.
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

/// The socket pair that is the child's standard input. It is not a pipe, because writing to a pipe without a reader
/// would end this process with SIGPIPE.
struct Input {
  Descriptor writer;
  Descriptor reader;

  Input() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw error_of_descriptors("a socket", errno);
    }
    writer = Descriptor(ends[0]);
    reader = Descriptor(ends[1]);
  }
};

}  // namespace

struct ChildProcess::State {
  explicit State(ProcessCallbacks given) : callbacks(std::move(given)) {}
  ProcessCallbacks callbacks;
  Input input;
  Stream output{callbacks.on_output};
  Stream error{callbacks.on_error};
  std::array<Stream*, 2> open{&output, &error};
  ::pid_t child = 0;
  std::optional<std::chrono::steady_clock::time_point> stopped;
  std::optional<std::chrono::steady_clock::time_point> ended;

  /// Returns whether the child has ended. Does not reap the child, so that the system cannot reuse the id of its
  /// process group.
  bool has_ended() {
    ::siginfo_t info{};
    if (!ended && ::waitid(P_PID, static_cast<::id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child) {
      ended = std::chrono::steady_clock::now();
    }
    return ended.has_value();
  }

  void stop() {
    stopped = std::chrono::steady_clock::now();
    send(SIGTERM);
  }

  /// Waits until the child has ended, and returns its exit code or signal. If the child was asked to stop and does not
  /// end, it is killed after `patience`.
  ProcessResult wait() {
    constexpr std::chrono::milliseconds pause{5};
    std::optional<ProcessResult> end = end_of(child);
    for (; !end; end = end_of(child)) {
      std::this_thread::sleep_for(pause);
      stop_if_asked();
    }
    child = 0;
    return *end;
  }

  /// Sends a signal to the child's whole process group, because a shell does not forward signals to its children.
  void send(int signal) const { ::kill(-child, signal); }

  void stop_if_asked() {
    if (!stopped && callbacks.should_stop && callbacks.should_stop()) {
      stop();
    } else if (stopped && std::chrono::steady_clock::now() - *stopped > patience) {
      send(SIGKILL);
    }
  }
};

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                           ProcessCallbacks callbacks)
    : state_(std::make_unique<State>(std::move(callbacks))) {
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts = merged_environment(environment);
  const SpawnOptions options(state_->input.reader.get(), state_->output.writer.get(), state_->error.writer.get());
  const int failed = ::posix_spawnp(&state_->child, argument_texts[0].c_str(), options.actions(), options.attributes(),
                                    pointers(argument_texts).data(), pointers(environment_texts).data());
  if (failed != 0) {
    state_->child = 0;
    throw Error(Error::Kind::missing_tool, fmt::format("{}: this program cannot be started: {}", arguments[0],
                                                       std::generic_category().message(failed)));
  }
  state_->input.reader.close();
  state_->output.writer.close();
  state_->error.writer.close();
}

ChildProcess::~ChildProcess() {
  if (state_->child <= 0) return;
  // Closes the pipes, so that the child does not block on output that is no longer read.
  for (Descriptor* end : {&state_->input.writer, &state_->output.reader, &state_->error.reader}) end->close();
  state_->stop();
  (void)state_->wait();
}

void ChildProcess::write_line(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ::ssize_t count = ::send(state_->input.writer.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
}

void ChildProcess::close_input() { state_->input.writer.close(); }

bool ChildProcess::read_some() {
  std::array<Stream*, 2>& open = state_->open;
  std::array<::pollfd, 2> polled{};
  for (std::size_t i = 0; i < open.size(); ++i) {
    polled[i] = {.fd = open[i] == nullptr ? -1 : open[i]->reader.get(), .events = POLLIN, .revents = 0};
  }
  const bool ended = state_->has_ended();
  const int ready = ::poll(polled.data(), polled.size(), poll_milliseconds);
  state_->stop_if_asked();
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (polled[i].revents != 0 && !open[i]->read_some()) open[i] = nullptr;
  }
  // Descendants that outlive the child may keep its outputs open forever, in a session that signals do not reach. All
  // output of the child itself has arrived once there is nothing to read.
  if (ended && (ready == 0 || std::chrono::steady_clock::now() - *state_->ended > afterwards)) {
    for (Stream*& stream : open) {
      if (stream != nullptr) stream->finish();
      stream = nullptr;
    }
  }
  return open[0] != nullptr || open[1] != nullptr;
}

ProcessResult ChildProcess::wait() { return state_->wait(); }

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> merged = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const std::string& change : changes) {
      replaced = replaced || std::string_view(change).substr(0, change.find('=')) == name;
    }
    if (!replaced) merged.emplace_back(text);
  }
  return merged;
}

ProcessResult run_process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                          const ProcessCallbacks& callbacks) {
  ChildProcess child(arguments, environment, callbacks);
  child.close_input();
  while (child.read_some()) {
  }
  return child.wait();
}

}  // namespace graft::engine
