"""Encodes and decodes the bodies of messages: integers of 64 bits, and blocks of bytes, each after its length. This is
the counterpart of src/runtime/worker/messages.cpp in the worker; both must agree on every body."""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

PROTOCOL_VERSION = 4
NUMBER = struct.Struct("=Q")
# Alignment of the elements of every tensor in a body, in bytes, as the widest type needs it.
ALIGNMENT = 16


class Kind(enum.IntEnum):
    """The kind of a message. The values are those of MessageKind in C++."""

    GREETING = 1
    DONE = 2
    FAILED = 3
    OPEN = 4
    COMPILE = 5
    EVALUATE = 6
    RUN = 7


class ErrorKind(enum.IntEnum):
    """The kind of an error. The values are those of Error::Kind in C++."""

    ANSWER_IS_NO = 0
    BAD_INPUT = 1
    MISSING_TOOL = 2
    INTERNAL = 3


class Failure(Exception):
    """An exception that the C++ side reports to its caller as an Error."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class ModelToCompile(NamedTuple):
    source: str
    threads: int
    model: bytes | str  # The ONNX model, or the path of its file where the model is too large for a message.


class Writer:
    """Encodes the body of a message."""

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
    """Decodes the body of a message. The blocks that it returns are views of the body."""

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
        # The mode that selects how Graft's operators are computed: in this model all of them are ONNX functions.
        self.number()
        for _ in range(self.number()):
            self.block()  # The name of an extra output, which is already an output of the model.
        threads = self.number()
        for _ in range(2):
            self.number()  # The number of streams, which share the threads, and the rounding mode: nothing is rounded.
        source = self.text()
        file = self.text()
        content = bytes(self.block())
        return ModelToCompile(source, threads, file or content)

    def _take(self, size: int) -> memoryview:
        if size > len(self._body) - self._place:
            raise ValueError(f"{size} bytes are needed, but only {len(self._body) - self._place} are left")
        self._place += size
        return self._body[self._place - size : self._place]
