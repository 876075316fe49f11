# Runs TensorRT in a worker process, relays its events, and turns its death into an error event.
"""The supervisor itself never imports TensorRT, so nothing that TensorRT does can end it."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from graft.engine.events import EngineError
from graft.engine.flavours import Flavour, make_library_links
from graft.engine.libraries import read_library, self_registration

LAST_MESSAGES = 20
SHOWN_OUTPUT = 3
LOADING_LIMIT = 120.0  # seconds that a plugin library may take to be opened
QUIET_SEVERITIES = ("internal_error", "error", "warning")

Relay = Callable[[dict[str, Any]], None]


@dataclass
class Outcome:
    """What a worker left behind: its last word, or how it died."""

    final: dict[str, Any] | None = None
    return_code: int = 0
    loading: str | None = None  # the plugin library that it was opening
    loading_since: float = 0.0
    has_hung: bool = False  # while it opened that library; it was killed
    output: collections.deque[str] = field(default_factory=lambda: collections.deque(maxlen=LAST_MESSAGES))
    last_messages: collections.deque[str] = field(default_factory=lambda: collections.deque(maxlen=LAST_MESSAGES))


def run_worker(request: dict[str, Any], flavour: Flavour | None, relay: Relay, verbose: bool = False) -> dict[str, Any]:
    """Runs one request; returns its result event. Raises EngineError for an error event or a death."""
    with tempfile.TemporaryDirectory(prefix="graft-engine-") as links:
        environment = worker_environment(flavour, pathlib.Path(links))
        outcome = watch(request, environment, relay, verbose)
    if outcome.final is None and outcome.has_hung:
        raise hang_error(outcome.loading, LOADING_LIMIT, list(outcome.last_messages))
    if outcome.final is None:
        raise crash_error_after(request["command"], outcome.return_code, list(outcome.last_messages), outcome.loading)
    if outcome.final["event"] == "error":
        raise with_output(EngineError.from_event(outcome.final), list(outcome.output))
    return outcome.final


def with_output(error: EngineError, output: list[str]) -> EngineError:
    """A plugin says on standard error why it refuses: TensorRT gives it no logger outside of inference."""
    if not output or error.kind not in ("parse", "build", "plugin_library"):
        return error
    message = f"{error.message}; what was printed meanwhile: {'; '.join(output[-SHOWN_OUTPUT:])}"
    return EngineError(error.kind, message, error.next_step, **error.facts, output=output)


def worker_environment(flavour: Flavour | None, links: pathlib.Path) -> dict[str, str]:
    environment = dict(os.environ)
    package_parent = str(pathlib.Path(__file__).resolve().parents[2])
    environment["PYTHONPATH"] = joined_paths(package_parent, environment.get("PYTHONPATH"))
    # Bindings announce deprecations on standard error, which is not news for whoever builds an engine.
    environment.setdefault("PYTHONWARNINGS", "ignore::DeprecationWarning")
    if flavour is not None and make_library_links(flavour, links):
        environment["LD_LIBRARY_PATH"] = joined_paths(str(links), environment.get("LD_LIBRARY_PATH"))
    return environment


def joined_paths(first: str, rest: str | None) -> str:
    return f"{first}{os.pathsep}{rest}" if rest else first


def start_worker(environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], BinaryIO]:
    """A worker that waits for its request, and the pipe through which it reports events."""
    read_end, write_end = os.pipe()
    event_pipe = os.fdopen(read_end, "rb", buffering=0)
    try:
        worker = subprocess.Popen(
            [sys.executable, "-m", "graft.engine.worker", str(write_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(write_end,),
            env=environment,
        )
    except BaseException:
        event_pipe.close()
        raise
    finally:
        os.close(write_end)
    return worker, event_pipe


def watch(request: dict[str, Any], environment: dict[str, str], relay: Relay, verbose: bool) -> Outcome:
    outcome = Outcome()
    worker, event_pipe = start_worker(environment)
    with event_pipe:
        try:
            send_request(worker, request)
            assert worker.stdout is not None
            read_until_closed(event_pipe, worker.stdout, outcome, relay, verbose)
            if not outcome.has_hung:
                outcome.return_code = worker.wait()
        finally:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()
    return outcome


def send_request(worker: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    assert worker.stdin is not None
    try:
        with worker.stdin as pipe:
            pipe.write(json.dumps(request).encode())
    except BrokenPipeError:
        pass  # it died at once; what it said is read below


def read_until_closed(
    event_pipe: BinaryIO, output_pipe: BinaryIO, outcome: Outcome, relay: Relay, verbose: bool
) -> None:
    """Reads both pipes line by line until the worker has closed them, or a plugin library hangs while it is opened."""

    def on_event(line: bytes) -> None:
        event = json.loads(line)
        if event["event"] in ("result", "error"):
            outcome.final = event
        elif event["event"] == "loading":
            outcome.loading = event["library"]
            outcome.loading_since = time.monotonic()
        elif event["event"] != "log":
            relay(event)
        else:
            if event["severity"] != "verbose":
                outcome.last_messages.append(event["message"])
            if verbose or event["severity"] in QUIET_SEVERITIES:
                relay(event)

    def on_output(line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if not text:
            return
        outcome.last_messages.append(text)
        outcome.output.append(text)
        if verbose:
            relay({"event": "log", "severity": "output", "message": text})

    handlers = {event_pipe.fileno(): on_event, output_pipe.fileno(): on_output}
    pending = dict.fromkeys(handlers, b"")
    with selectors.DefaultSelector() as selector:
        for descriptor in handlers:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            left = None if outcome.loading is None else outcome.loading_since + LOADING_LIMIT - time.monotonic()
            if left is not None and left <= 0:
                outcome.has_hung = True
                return
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 65536)
                *lines, pending[key.fd] = (pending[key.fd] + chunk).split(b"\n")
                for line in lines:
                    handlers[key.fd](line)
                if not chunk:
                    selector.unregister(key.fd)
    if pending[output_pipe.fileno()]:
        on_output(pending[output_pipe.fileno()])


def crash_error_after(command: str, code: int, last: list[str], loading: str | None) -> EngineError:
    """How a worker of that command ended, and what it was doing."""
    how = f"with exit code {code}"
    signal_name = None
    next_step = "The last messages say what it was doing; run again with --verbose for all of them"
    if code < 0:
        signal_name = signal.Signals(-code).name
        how = f"by signal {signal_name}"
    facts = {"signal": signal_name, "return_code": code, "last_messages": last}
    said = f"; its last message: {last[-1]}" if last else ""
    if loading is not None:
        return ended_by_library(loading, how, said, facts)
    if signal_name == "SIGKILL":
        next_step = "The system probably ran out of memory: use a machine with more, or a smaller --workspace"
    return EngineError("crash", f"the TensorRT process of `{command}` ended {how}{said}", next_step, **facts)


def ended_by_library(path: str, how: str, said: str, facts: dict[str, Any]) -> EngineError:
    """Of a library whose code ended the process while it was opened."""
    message = f"plugin library {path}: the TensorRT process ended {how} while it opened the plugin library"
    next_step = "Code that the library runs when it is opened ends the process: its author has to mend that"
    cause = "crash"
    library = read_library(pathlib.Path(path))
    if library is not None and library.registers_itself:
        why = self_registration("and the registry that it found is another TensorRT's than it was built with")
        message += f": {why['why']}"
        cause, next_step = why["cause"], why["next_step"]
    return EngineError("plugin_library", message + said, next_step, library=path, cause=cause, **facts)


def hang_error(loading: str | None, limit: float, last: list[str]) -> EngineError:
    """Of a worker that was killed because it did not come to an end."""
    said = f"; its last message: {last[-1]}" if last else ""
    if loading is None:
        message = f"TensorRT was not ready after {limit:g} s{said}"
        return EngineError("crash", message, "Try again on a machine that is less busy", last_messages=last)
    return EngineError(
        "plugin_library",
        f"plugin library {loading}: it was not open after {limit:g} s: code that it runs when it is opened hangs{said}",
        "Its author has to mend that; if it is slow alone, `graft inspect` waits longer with --time-limit",
        library=loading,
        cause="hang",
        last_messages=last,
    )
