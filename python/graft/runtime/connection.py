"""Sends and receives messages over a Unix socket: each has a header and a body, and some carry a file descriptor. This
is the counterpart of src/runtime/worker/connection.cpp in the worker. Both ends run on one machine, so integers are in
the byte order of this machine."""

from __future__ import annotations

import os
import socket
import struct
from typing import NamedTuple

MAGIC = 0x54465247  # "GRFT"
HEADER = struct.Struct("=IIQ")


class Message(NamedTuple):
    kind: int
    body: bytearray
    attached: int | None  # The file descriptor that was sent with the message.


class Connection:
    """The local side of a socket connection. Only one thread at a time may use it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def send(self, kind: int, parts: list[bytes | memoryview]) -> None:
        """Sends a message whose body is the concatenation of `parts`. Raises OSError where the peer has closed its
        end."""
        self._socket.sendall(HEADER.pack(MAGIC, kind, sum(len(part) for part in parts)))
        for part in parts:
            self._socket.sendall(part)

    def receive(self) -> Message | None:
        """Waits for a message and returns it, or None where the peer has closed its end. Raises ValueError for bytes
        that are not a message."""
        header = bytearray()
        attached: int | None = None
        while len(header) < HEADER.size:
            piece, descriptors, _, _ = socket.recv_fds(
                self._socket, HEADER.size - len(header), 1, socket.MSG_CMSG_CLOEXEC
            )
            attached = descriptors[0] if descriptors else attached
            if not piece:
                return None
            header += piece
        magic, kind, size = HEADER.unpack(header)
        if magic != MAGIC:
            raise ValueError("the bytes are not a message of Graft")
        body = bytearray(size)
        view = memoryview(body)
        while view:
            count = self._socket.recv_into(view)
            if count == 0:
                return None
            view = view[count:]
        return Message(kind, body, attached)

    def close(self) -> None:
        self._socket.close()


def connection_of(descriptor: int) -> Connection:
    """Returns a connection over the socket with this file descriptor, which the connection owns and closes."""
    os.set_inheritable(descriptor, False)
    return Connection(socket.socket(fileno=descriptor))
