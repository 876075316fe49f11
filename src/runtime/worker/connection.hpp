// Messages between Graft and a worker, over a Unix socket.
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
  Descriptor attached;  ///< A descriptor that was sent along; for most messages there is none.
};

/// One end of a connection. A socket rather than pipes: it carries descriptors, and writing to a peer that is gone is
/// an error instead of a signal.
class Connection {
 public:
  /// A larger message is taken for a damaged one.
  static constexpr std::uint64_t largest_body = std::uint64_t{1} << 36U;

  /// Called about once a second during one wait for the peer; true ends the wait as if the peer were gone.
  using GivesUp = std::function<bool()>;

  /// `begin_wait` is called at the beginning of each wait that takes longer than a second. Without it there is no
  /// limit.
  explicit Connection(Descriptor socket, std::function<GivesUp()> begin_wait = {})
      : socket_(std::move(socket)), begin_wait_(std::move(begin_wait)) {}

  /// Two connected ends. Throws Error where the system has no more sockets.
  [[nodiscard]] static std::pair<Descriptor, Descriptor> make_sockets();

  /// Sends a body that consists of these parts. Returns false where the peer is gone. Throws Error (internal) for a
  /// body beyond largest_body.
  [[nodiscard]] bool send(std::uint32_t kind, std::span<const std::string_view> parts, int attached = -1);
  [[nodiscard]] bool send(std::uint32_t kind, std::string_view body, int attached = -1) {
    return send(kind, std::span(&body, 1), attached);
  }

  /// Waits for a message; nothing where the peer is gone, also in the middle of one. Throws Error (internal) for bytes
  /// that are no message. The memory for a body grows with what arrives, whatever size is declared.
  [[nodiscard]] std::optional<Message> receive();

 private:
  bool send_all(std::string_view bytes, int attached);
  bool receive_all(std::span<char> bytes, Descriptor& attached);
  /// Waits until the socket is ready for the events of poll(2).
  bool wait_for(short events);

  Descriptor socket_;
  std::function<GivesUp()> begin_wait_;
};

}  // namespace graft::runtime
