# Bodies of messages: numbers of 64 bits, and bytes with their length in front.
"""The same as src/runtime/worker/messages.cpp."""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

PROTOCOL_VERSION = 4
NUMBER = struct.Struct("=Q")
# Elements of tensors lie in a body as the widest of them has to.
ALIGNMENT = 16


class Kind(enum.IntEnum):
    """Of a message; MessageKind in C++."""

    GREETING = 1
    DONE = 2
    FAILED = 3
    OPEN = 4
    COMPILE = 5
    EVALUATE = 6
    RUN = 7


class ErrorKind(enum.IntEnum):
    """Error::Kind in C++."""

    ANSWER_IS_NO = 0
    BAD_INPUT = 1
    MISSING_TOOL = 2
    INTERNAL = 3


class Failure(Exception):
    """What reaches the caller as an Error."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class ModelToCompile(NamedTuple):
    source: str
    threads: int
    model: bytes | str  # A file where it is too large for a message.


class Writer:
    """Makes a body."""

    def __init__(self) -> None:
        self.parts: list[bytes | memoryview] = []
        self._size = 0

    def number(self, value: int) -> None:
        self._add(NUMBER.pack(value))

    def block(self, value: bytes | memoryview) -> None:
        self.number(len(value))
        self._add(b"\0" * (-self._size % ALIGNMENT))
        self._add(value)

    def text(self, value: str) -> None:
        self.block(value.encode())

    def _add(self, part: bytes | memoryview) -> None:
        self.parts.append(part)
        self._size += len(part)


class Reader:
    """Takes a body apart; what it returns are views of it."""

    def __init__(self, body: bytearray) -> None:
        self._body = memoryview(body)
        self._place = 0

    def number(self) -> int:
        value: int = NUMBER.unpack(self._take(NUMBER.size))[0]
        return value

    def block(self) -> memoryview:
        size = self.number()
        self._take(-self._place % ALIGNMENT)
        return self._take(size)

    def text(self) -> str:
        return str(self.block(), "utf-8")

    def compile(self) -> ModelToCompile:
        self.number()  # How operators are computed: the model has no operators of Graft's that are not functions.
        for _ in range(self.number()):
            self.block()  # Extra outputs, which are outputs of the model that arrives.
        threads = self.number()
        for _ in range(2):
            self.number()  # Streams share the threads; nothing is rounded inside.
        source = self.text()
        file = self.text()
        content = bytes(self.block())
        return ModelToCompile(source, threads, file or content)

    def _take(self, size: int) -> memoryview:
        if size > len(self._body) - self._place:
            raise ValueError(f"{size} bytes are wanted where {len(self._body) - self._place} are left")
        self._place += size
        return self._body[self._place - size : self._place]
