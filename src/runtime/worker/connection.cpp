// Sends and receives whole messages with sendmsg and recvmsg.
#include "runtime/worker/connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "core/descriptor_error.hpp"
#include "graft/error.hpp"

namespace graft::runtime {
namespace {

/// The header of a message, in the byte order of this machine: both ends run on one machine.
struct Header {
  std::uint32_t magic = 0;
  std::uint32_t kind = 0;
  std::uint64_t size = 0;
};
constexpr std::uint32_t expected_magic = 0x54465247;  // "GRFT"

/// Memory for the control message that carries one descriptor.
union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  ::cmsghdr alignment;
};

::msghdr message_of(::iovec& part) {
  ::msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return message;
}

}  // namespace

std::pair<Descriptor, Descriptor> Connection::make_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw error_of_descriptors("a socket", errno);
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

bool Connection::wait_for(short events) {
  if (is_stopped_) return false;
  constexpr int second = 1000;
  constexpr int often = 100;
  const int timeout = should_stop_ ? often : begin_wait_ ? second : -1;
  GivesUp gives_up;
  int waited = 0;
  for (;;) {
    ::pollfd polled{.fd = socket_.get(), .events = events, .revents = 0};
    const int ready = ::poll(&polled, 1, timeout);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready < 0) continue;
    if (should_stop_ && should_stop_()) {
      is_stopped_ = true;
      return false;
    }
    waited += timeout;
    if (!begin_wait_ || waited < second) continue;
    waited = 0;
    if (!gives_up) gives_up = begin_wait_();
    if (gives_up()) return false;
  }
}

bool Connection::send_all(std::string_view bytes, int attached) {
  while (!bytes.empty()) {
    ::iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};  // sendmsg only reads the bytes
    ::msghdr message = message_of(part);
    Control control{};
    if (attached >= 0) {
      message.msg_control = control.bytes.data();
      message.msg_controllen = control.bytes.size();
      ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &attached, sizeof(int));
    }
    const ::ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN && wait_for(POLLOUT)) continue;
    if (count < 0) return false;
    attached = -1;  // the descriptor is sent together with the first bytes
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool Connection::receive_all(std::span<char> bytes, Descriptor& attached) {
  while (!bytes.empty()) {
    ::iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    ::msghdr message = message_of(part);
    Control control{};
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ::ssize_t count = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN && wait_for(POLLIN)) continue;
    if (count <= 0) return false;
    const ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
      attached = Descriptor(descriptor);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool Connection::send(std::uint32_t kind, std::span<const std::string_view> parts, int attached) {
  std::uint64_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  if (size > largest_body) {
    throw Error(Error::Kind::internal,
                fmt::format("a message to the worker has {} bytes; it may have at most {}", size, largest_body));
  }
  const Header header{.magic = expected_magic, .kind = kind, .size = size};
  std::array<char, sizeof(Header)> bytes{};
  std::memcpy(bytes.data(), &header, sizeof(Header));
  return send_all({bytes.data(), bytes.size()}, attached) &&
         std::all_of(parts.begin(), parts.end(), [&](std::string_view part) { return send_all(part, -1); });
}

std::optional<Message> Connection::receive() {
  Message message;
  std::array<char, sizeof(Header)> bytes{};
  if (!receive_all(bytes, message.attached)) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  if (header.magic != expected_magic) throw Error(Error::Kind::internal, "the bytes are not a message of Graft");
  if (header.size > largest_body) {
    throw Error(Error::Kind::internal,
                fmt::format("a message declares {} bytes; it may have at most {}", header.size, largest_body));
  }
  message.kind = header.kind;
  constexpr std::uint64_t step = std::uint64_t{1} << 26U;
  // Reserved pages occupy no memory until they are written, and a body that fits into the reservation is never moved.
  constexpr std::uint64_t most_reserved = std::uint64_t{1} << 32U;
  message.body.reserve(static_cast<std::size_t>(std::min(header.size, most_reserved)));
  while (message.body.size() < header.size) {
    const std::size_t begin = message.body.size();
    message.body.resize(begin + static_cast<std::size_t>(std::min(step, header.size - begin)));
    if (!receive_all(std::span(message.body).subspan(begin), message.attached)) return std::nullopt;
  }
  return message;
}

}  // namespace graft::runtime
