# Messages over a Unix socket: a header, a body, and with some a descriptor.
"""The same as src/runtime/worker/connection.cpp, of the worker's side. Both ends are on one machine, so numbers are in
its byte order."""

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
    attached: int | None  # A descriptor that was sent along.


class Connection:
    """One end. Used by one thread at a time."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def send(self, kind: int, parts: list[bytes | memoryview]) -> None:
        """Raises OSError where the peer is gone."""
        self._socket.sendall(HEADER.pack(MAGIC, kind, sum(len(part) for part in parts)))
        for part in parts:
            self._socket.sendall(part)

    def receive(self) -> Message | None:
        """Waits for a message; None where the peer is gone."""
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
            raise ValueError("these bytes are no message of Graft's")
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
    """The connection takes the descriptor over."""
    os.set_inheritable(descriptor, False)
    return Connection(socket.socket(fileno=descriptor))
