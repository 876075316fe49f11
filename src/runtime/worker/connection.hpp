// Messages between Graft and a worker process, over a Unix socket.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/descriptor.hpp"

namespace graft::runtime {

struct Message {
  std::uint32_t kind = 0;
  std::string body;
  Descriptor attached;  ///< A descriptor that was sent with the message; most messages have none.
};

/// The local side of a connection. It uses a socket instead of pipes, because a socket can transfer descriptors, and
/// because writing to a closed peer is an error instead of a signal.
class Connection {
 public:
  /// The largest size of a body in bytes. A message that declares a larger body is treated as damaged.
  static constexpr std::uint64_t largest_body = std::uint64_t{1} << 36U;

  /// A function that is called about once per second while one wait for the peer lasts. If it returns true, the wait
  /// ends as if the peer were gone.
  using GivesUp = std::function<bool()>;

  /// Creates a connection over a connected socket. `begin_wait` is called at the beginning of each wait that takes
  /// longer than a second, and returns the function that may give up this wait. Without it, waits have no limit.
  explicit Connection(Descriptor socket, std::function<GivesUp()> begin_wait = {})
      : socket_(std::move(socket)), begin_wait_(std::move(begin_wait)) {}

  /// Sets a function that is called several times a second during each wait. If it returns true, the wait ends as if
  /// the peer were gone, and the connection cannot be used any more.
  void set_should_stop(std::function<bool()> should_stop) { should_stop_ = std::move(should_stop); }
  [[nodiscard]] const std::function<bool()>& should_stop() const { return should_stop_; }
  /// Returns whether the function `should_stop` has ended a wait.
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }

  /// Returns two connected sockets. Throws Error if the system cannot create sockets.
  [[nodiscard]] static std::pair<Descriptor, Descriptor> make_sockets();

  /// Sends a message of a kind (MessageKind) whose body is the concatenation of `parts`. If `attached` is not -1, sends
  /// this file descriptor with it. Returns false if the peer is gone. Throws Error (internal) for a body larger than
  /// largest_body.
  [[nodiscard]] bool send(std::uint32_t kind, std::span<const std::string_view> parts, int attached = -1);
  [[nodiscard]] bool send(std::uint32_t kind, std::string_view body, int attached = -1) {
    return send(kind, std::span(&body, 1), attached);
  }

  /// Waits for a message and returns it, or nothing if the peer is gone, even in the middle of a message. Throws Error
  /// (internal) for bytes that are not a message. The memory for a body grows with the bytes that arrive, whatever size
  /// is declared.
  [[nodiscard]] std::optional<Message> receive();

 private:
  bool send_all(std::string_view bytes, int attached);
  bool receive_all(std::span<char> bytes, Descriptor& attached);
  /// Waits until the socket is ready for the events of poll(2). Returns false if the wait was given up or stopped.
  bool wait_for(short events);

  Descriptor socket_;
  std::function<GivesUp()> begin_wait_;
  std::function<bool()> should_stop_;
  bool is_stopped_ = false;
};

}  // namespace graft::runtime
