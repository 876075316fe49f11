// Runs a child process with posix_spawn and reads its two outputs with poll.
#include "engine/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "graft/error.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace graft {
namespace {

constexpr int poll_milliseconds = 100;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    return *this;
  }
  [[nodiscard]] int get() const { return descriptor_; }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_ = -1;
};

/// The reading end of a pipe, and the text of its last, unfinished line.
struct Stream {
  Descriptor reader;
  Descriptor writer;
  std::string pending;
  const std::function<void(std::string_view)>* on_line = nullptr;

  explicit Stream(const std::function<void(std::string_view)>& callback) : on_line(&callback) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(Error::Kind::internal, fmt::format("no pipe: {}", std::generic_category().message(errno)));
    }
    reader = Descriptor(ends[0]);
    writer = Descriptor(ends[1]);
  }

  void emit(std::string_view line) const {
    if (*on_line) (*on_line)(line);
  }

  /// False at the end of the stream.
  bool read_some() {
    std::array<char, 65536> buffer{};
    const ::ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    if (count == 0) {
      if (!pending.empty()) emit(pending);
      pending.clear();
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

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// posix_spawn's two option objects.
class SpawnOptions {
 public:
  SpawnOptions(int output, int error) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, error, STDERR_FILENO);
    // A process group of its own: Ctrl-C reaches this process alone, which then ends the child in good order.
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::sigset_t defaults;
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGINT);
    ::sigaddset(&defaults, SIGTERM);
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

ProcessResult wait_for(::pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ProcessResult result;
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

/// Ends and reaps the child if a callback throws.
class ChildGuard {
 public:
  explicit ChildGuard(::pid_t child) : child_(child) {}
  ~ChildGuard() {
    if (child_ <= 0) return;
    ::kill(child_, SIGTERM);
    (void)wait_for(child_);
  }
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;
  ProcessResult wait() { return wait_for(std::exchange(child_, 0)); }

 private:
  ::pid_t child_;
};

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                          const ProcessCallbacks& callbacks) {
  Stream output(callbacks.on_output);
  Stream error(callbacks.on_error);
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts = merged_environment(environment);
  ::pid_t child = 0;
  {
    const SpawnOptions options(output.writer.get(), error.writer.get());
    const int failed = ::posix_spawnp(&child, argument_texts[0].c_str(), options.actions(), options.attributes(),
                                      pointers(argument_texts).data(), pointers(environment_texts).data());
    if (failed != 0) {
      throw Error(Error::Kind::missing_tool,
                  fmt::format("{}: cannot be started: {}", arguments[0], std::generic_category().message(failed)));
    }
  }
  ChildGuard guard(child);
  output.writer.close();
  error.writer.close();

  bool stopped = false;
  std::array<Stream*, 2> streams{&output, &error};
  while (streams[0] != nullptr || streams[1] != nullptr) {
    std::array<::pollfd, 2> polled{};
    for (std::size_t i = 0; i < streams.size(); ++i) {
      polled[i] = {.fd = streams[i] == nullptr ? -1 : streams[i]->reader.get(), .events = POLLIN, .revents = 0};
    }
    (void)::poll(polled.data(), polled.size(), poll_milliseconds);
    if (!stopped && callbacks.should_stop && callbacks.should_stop()) {
      stopped = true;
      ::kill(child, SIGTERM);
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (polled[i].revents != 0 && !streams[i]->read_some()) streams[i] = nullptr;
    }
  }
  return guard.wait();
}

}  // namespace graft
