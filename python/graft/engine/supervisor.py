"""Runs TensorRT in a worker process, relays its events, and turns a crash of the worker into an error event. The
supervisor never imports TensorRT, so TensorRT cannot end the supervisor."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import os
import pathlib
import resource
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from graft.engine.events import EngineError, read_event
from graft.engine.flavors import Flavor, make_library_links
from graft.engine.folders import links_folder
from graft.engine.libraries import read_library, self_registration
from graft.engine.names import named

LAST_MESSAGES = 20
SHOWN_OUTPUT = 3
LOADING_LIMIT = 120.0  # seconds in which a plugin library has to be open
# Seconds without an event after which a worker counts as hanging, by command. A build may time the kernels of a layer
# for a long time without an event.
QUIET_LIMITS = {"probe": 120.0, "plugins": 120.0, "parse": 600.0, "build": 3600.0}
# Seconds without processor time after which a worker counts as hanging: TensorRT waits for ever where one of its
# threads could not allocate memory.
IDLE_LIMIT = 60
POLL_SECONDS = 0.2
CLOSING_SECONDS = 0.01  # time between two checks for the end of the worker after its pipes have closed
DRAIN_SECONDS = 1.0
# TensorRT's builder allocates and frees millions of small objects, and glibc repeatedly coalesces those in its fast
# bins. With long thread caches instead, the build of RAFT takes 8 % less processor time.
ALLOCATOR = "glibc.malloc.mxfast=0:glibc.malloc.tcache_count=60000"
# Runs a module without the working directory on the path, where `-m` puts it: a file json.py in this directory would
# run.
RUN_MODULE = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; import runpy; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
QUIET_SEVERITIES = ("internal_error", "error", "warning")

Relay = Callable[[dict[str, Any]], None]


@dataclass
class Outcome:
    """How a worker ended: its final event, or the reason why it died."""

    token: str  # the token in each of the worker's events
    final: dict[str, Any] | None = None  # the event "result" or "error"
    return_code: int = 0
    loading: str | None = None  # the plugin library that the worker was opening
    since: float = field(default_factory=time.monotonic)  # the time of the last event
    hung_after: float | None = None  # the limit in seconds that the worker exceeded before it was killed
    was_idle: bool = False  # whether `hung_after` is the limit of processor time
    output: collections.deque[str] = field(default_factory=lambda: collections.deque(maxlen=LAST_MESSAGES))
    last_messages: collections.deque[str] = field(default_factory=lambda: collections.deque(maxlen=LAST_MESSAGES))


def run_worker(request: dict[str, Any], flavor: Flavor | None, relay: Relay, verbose: bool = False) -> dict[str, Any]:
    """Runs a request in a worker and returns its result event. Other events are passed to `relay`; with `verbose`, also
    all messages of TensorRT and the worker's output. Raises EngineError for an error event, a crash and a hang."""
    with links_folder() as links:
        environment = worker_environment(flavor, links) | visible_device(request.get("device"))
        outcome = watch(request, environment, relay, verbose)
    if outcome.hung_after is not None:
        if outcome.was_idle:
            raise idle_error(request["command"], outcome.loading, outcome.hung_after, list(outcome.last_messages))
        raise hang_error(request["command"], outcome.loading, outcome.hung_after, list(outcome.last_messages))
    # The final event only counts where the worker then ended with exit code 0.
    if outcome.final is None or outcome.return_code != 0:
        raise crash_error_after(request["command"], outcome.return_code, list(outcome.last_messages), outcome.loading)
    if outcome.final["event"] == "error":
        raise with_output(EngineError.from_event(outcome.final), list(outcome.output))
    return outcome.final


def with_output(error: EngineError, output: list[str]) -> EngineError:
    """Returns the error with the worker's output: a plugin writes the reason for its refusal to standard error, because
    TensorRT passes it no logger outside of inference."""
    if not output or error.kind not in ("parse", "build", "plugin_library"):
        return error
    message = f"{error.message}; the output of the process: {'; '.join(output[-SHOWN_OUTPUT:])}"
    return EngineError(error.kind, message, error.next_step, **error.facts, output=output)


def worker_environment(flavor: Flavor | None, links: pathlib.Path) -> dict[str, str]:
    environment = dict(os.environ)
    package_parent = str(pathlib.Path(__file__).resolve().parents[2])
    environment["PYTHONPATH"] = joined_paths(package_parent, environment.get("PYTHONPATH"))
    # The bindings write deprecation warnings to standard error, which do not concern the user who builds an engine.
    environment.setdefault("PYTHONWARNINGS", "ignore::DeprecationWarning")
    environment.setdefault("GLIBC_TUNABLES", ALLOCATOR)
    if flavor is not None and make_library_links(flavor, links):
        environment["LD_LIBRARY_PATH"] = joined_paths(str(links), environment.get("LD_LIBRARY_PATH"))
    return environment


def visible_device(number: int | None) -> dict[str, str]:
    """Returns the environment in which only this GPU is visible. `number` counts the GPUs that are visible to this
    process, as in CUDA. Raises EngineError for a number that is too large."""
    if number is None:
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return {"CUDA_VISIBLE_DEVICES": str(number)}
    names = [name.strip() for name in visible.split(",") if name.strip()]
    if number >= len(names):
        raise EngineError(
            "option",
            f"{named('--device')} {number}: CUDA_VISIBLE_DEVICES={visible} shows {len(names)} GPUs",
            "Use a smaller number; the first GPU is 0",
        )
    return {"CUDA_VISIBLE_DEVICES": names[number]}


def joined_paths(first: str, rest: str | None) -> str:
    """Returns `first`, joined with `rest`, a list of folders in the form of PATH or None. Empty entries are left out,
    because they would mean the working directory."""
    return os.pathsep.join([first, *filter(None, (rest or "").split(os.pathsep))])


class Children:
    """The running workers. After `adopt_orphans`, processes that a worker leaves behind become children of this
    process, even if they started a session of their own, and are killed when the worker ends. All children of this
    process have to be workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: set[int] = set()
        self._adopts = False

    def adopt_orphans(self) -> None:
        set_child_subreaper = 36
        self._adopts = ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        with self._lock:
            worker = subprocess.Popen(command, **options)
            self._workers.add(worker.pid)
        return worker

    def end(self, worker: subprocess.Popen[bytes]) -> int:
        """Kills the worker and all processes that it started, and returns the worker's exit code."""
        with self._lock:
            if worker.returncode is None:
                # In a group with processes of another user, the signal reaches the other processes.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(worker.pid, signal.SIGKILL)
            code = worker.wait()
            self._workers.discard(worker.pid)
            # The children of a killed orphan become children of this process as well. A process of another user cannot
            # be killed, so the loop does not wait for it.
            beyond: set[int] = set()
            while self._adopts and (orphans := children_of(os.getpid()) - self._workers - beyond):
                for orphan in orphans:
                    try:
                        os.kill(orphan, signal.SIGKILL)
                        os.waitpid(orphan, 0)
                    except PermissionError:
                        beyond.add(orphan)
                    except (ProcessLookupError, ChildProcessError):
                        pass
        return code


CHILDREN = Children()


def children_of(process: int) -> set[int]:
    found = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # the process has ended meanwhile
                after_name = pathlib.Path(entry.path, "stat").read_text().rpartition(")")[2]
                if int(after_name.split()[1]) == process:
                    found.add(int(entry.name))
    return found


def start_worker(environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], BinaryIO]:
    """Starts a worker, which waits for its request, and returns it with the pipe of its events. The worker leads a
    process group of its own, to which processes that a plugin starts belong."""
    read_end, write_end = os.pipe()
    event_pipe = os.fdopen(read_end, "rb", buffering=0)
    try:
        worker = CHILDREN.start(
            [sys.executable, "-c", RUN_MODULE, "graft.engine.worker", str(write_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(write_end,),
            env=environment,
            start_new_session=True,
        )
    except BaseException:
        event_pipe.close()
        raise
    finally:
        os.close(write_end)
    return worker, event_pipe


def has_ended(worker: subprocess.Popen[bytes]) -> bool:
    """Returns whether the worker has ended. Its pipes do not show this: a process that a plugin started may hold them
    open. The worker is not reaped, so that no other process gets the number of its group."""
    if worker.returncode is not None:
        return True
    return os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def watch(request: dict[str, Any], environment: dict[str, str], relay: Relay, verbose: bool) -> Outcome:
    outcome = Outcome(token=secrets.token_hex())
    worker, event_pipe = start_worker(environment)
    with event_pipe:
        try:
            send_request(worker, request | {"token": outcome.token})
            idle = IdleWatch(worker.pid, request.get("time_limit") or IDLE_LIMIT)
            read_until_ended(worker, event_pipe, outcome, limits_of(request), idle, relay, verbose)
        finally:
            outcome.return_code = CHILDREN.end(worker)
            if worker.stdout is not None:
                worker.stdout.close()
    return outcome


def limits_of(request: dict[str, Any]) -> tuple[float, float]:
    """Returns two limits in seconds: the limit for opening one plugin library, and the limit for the time between two
    events."""
    given = request.get("time_limit")
    return (LOADING_LIMIT, QUIET_LIMITS[request["command"]]) if given is None else (given, given)


def send_request(worker: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    assert worker.stdin is not None
    try:
        with worker.stdin as pipe:
            pipe.write(json.dumps(request).encode())
    except BrokenPipeError:
        pass  # the worker died at once; its output is read later


def read_until_ended(
    worker: subprocess.Popen[bytes],
    event_pipe: BinaryIO,
    outcome: Outcome,
    limits: tuple[float, float],
    idle: IdleWatch,
    relay: Relay,
    verbose: bool,
) -> None:
    """Reads both pipes line by line until the worker has ended or exceeds a limit, and records the events in
    `outcome`."""

    def on_event(line: bytes) -> None:
        event = read_event(line, outcome.token)
        if event is None:
            return
        outcome.since = time.monotonic()
        if event["event"] in ("result", "error"):
            outcome.final = event
        elif event["event"] == "loading":
            outcome.loading = event["library"]
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

    assert worker.stdout is not None
    loading_limit, quiet_limit = limits
    handlers = {event_pipe.fileno(): on_event, worker.stdout.fileno(): on_output}
    with contextlib.closing(LineReader(handlers)) as reader:
        while not has_ended(worker):
            limit = quiet_limit if outcome.loading is None else loading_limit
            left = outcome.since + limit - time.monotonic()
            if left <= 0:
                outcome.hung_after = limit
                return
            if reader.read(min(left, POLL_SECONDS)):
                idle.reset()
            elif idle.is_hanging():
                outcome.hung_after, outcome.was_idle = idle.limit, True
                return
        CHILDREN.end(worker)
        reader.drain()


class IdleWatch:
    """Detects a worker that hangs, as opposed to one that builds for a long time: the processes of its session have
    used no processor time for `limit` seconds. The seconds are counted by checks of this process, not by the clock,
    because freezing a container stops the worker and this process. A process that waits for a disk or is stopped by a
    debugger counts as busy."""

    def __init__(self, session: int, limit: float) -> None:
        self.limit = limit
        self._session = session
        self.reset()

    def reset(self) -> None:
        self._used: int | None = None
        self._idle = 0
        self._looked = time.monotonic()

    def is_hanging(self) -> bool:
        if time.monotonic() - self._looked >= 1:
            self._looked = time.monotonic()
            used = session_time(self._session)
            self._idle = self._idle + 1 if used is not None and used == self._used else 0
            self._used = used
        return self._idle >= self.limit


def session_time(session: int) -> int | None:
    """Returns the processor time of the processes of a session, in ticks; None where one of them waits for a disk or is
    stopped by a debugger, and so counts as busy."""
    total = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = pathlib.Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        state, of_session, times = fields[0], int(fields[3]), fields[11:15]
        if of_session == session:
            if state in "Dt":
                return None
            total += sum(map(int, times))
    return total


class LineReader:
    """Passes each line that is read from a pipe to the handler of this pipe."""

    def __init__(self, handlers: dict[int, Callable[[bytes], None]]) -> None:
        self._handlers = handlers
        self._pending = dict.fromkeys(handlers, b"")
        self._selector = selectors.DefaultSelector()
        for descriptor in handlers:
            self._selector.register(descriptor, selectors.EVENT_READ)

    def close(self) -> None:
        self._selector.close()

    def read(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for data, passes complete lines to the handlers, and returns whether a pipe was
        ready."""
        if not self._selector.get_map():
            time.sleep(min(timeout, CLOSING_SECONDS))
            return False
        ready = self._selector.select(timeout)
        for key, _ in ready:
            chunk = os.read(key.fd, 65536)
            *lines, self._pending[key.fd] = (self._pending[key.fd] + chunk).split(b"\n")
            if not chunk:
                self._selector.unregister(key.fd)
                lines.append(self._pending[key.fd])
            for line in lines:
                if line:
                    self._handlers[key.fd](line)
        return bool(ready)

    def drain(self) -> None:
        """Reads the data that is in the pipes, for at most DRAIN_SECONDS: a process that a plugin started may continue
        to write."""
        until = time.monotonic() + DRAIN_SECONDS
        while self.read(0) and time.monotonic() < until:
            pass


def crash_error_after(command: str, code: int, last: list[str], loading: str | None) -> EngineError:
    """Returns the error for a worker that ended without a result. `code` is its exit code, or minus the signal that
    ended it; `last` are its last messages; `loading` is the plugin library that it was opening, or None."""
    how = f"with exit code {code}"
    signal_name = None
    next_step = f"The last messages show what it was doing; run again with {named('--verbose')} for all messages"
    if code < 0:
        signal_name = signal.Signals(-code).name
        how = f"by signal {signal_name}"
    facts = {"signal": signal_name, "return_code": code, "last_messages": last}
    said = f"; its last message: {last[-1]}" if last else ""
    if loading is not None:
        return ended_by_library(loading, how, said, facts)
    if signal_name == "SIGKILL":
        next_step = (
            "The system probably ran out of memory: use a machine with more memory, or a smaller "
            f"{named('--memory')} workspace=SIZE"
        )
    return EngineError("crash", f"the TensorRT process of `{command}` ended {how}{said}", next_step, **facts)


def ended_by_library(path: str, how: str, said: str, facts: dict[str, Any]) -> EngineError:
    """Returns the error for a library whose code ended the process while it was opened. `how` says how the process
    ended, `said` is a clause with its last message, and `facts` are added to the error."""
    message = f"plugin library {path}: the TensorRT process ended {how} while it opened the plugin library"
    next_step = "Code that runs when the library is opened ends the process: the author of the library must fix it"
    cause = "crash"
    library = read_library(pathlib.Path(path))
    if library is not None and library.registers_itself:
        why = self_registration("and it found the registry of another TensorRT release than it was built with")
        message += f": {why['why']}"
        cause, next_step = why["cause"], why["next_step"]
    return EngineError("plugin_library", message + said, next_step, library=path, cause=cause, **facts)


def idle_error(command: str, loading: str | None, limit: float, last: list[str]) -> EngineError:
    """Returns the error for a worker that was killed because it had used no processor time for `limit` seconds.
    `loading` is the plugin library that it was opening, or None, and `last` are its last messages."""
    said = f"; its last message: {last[-1]}" if last else ""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    limited = "" if most == resource.RLIM_INFINITY else f", and the limit of its address space is {most >> 20} MiB"
    while_loading = f" while it opened the plugin library {loading}" if loading else ""
    next_step = (
        f"If a plugin waits, its author must fix it; {named('--time-limit')} SECONDS waits longer"
        if loading or not limited
        else "TensorRT waits forever if it cannot allocate memory: raise the limit with `ulimit -v unlimited`"
    )
    return EngineError(
        "hang",
        f"the TensorRT process of `{command}` hangs{while_loading}: it has used no processor time for {limit:g} s{limited}{said}",
        next_step,
        last_messages=last,
    )


def hang_error(command: str, loading: str | None, limit: float, last: list[str]) -> EngineError:
    """Returns the error for a worker that was killed because no event came within `limit` seconds. `loading` is the
    plugin library that it was opening, or None, and `last` are its last messages."""
    said = f"; its last message: {last[-1]}" if last else ""
    if loading is None:
        return EngineError(
            "hang",
            f"the TensorRT process of `{command}` hangs: it reported nothing for {limit:g} s{said}",
            f"If a plugin does not return, its author must fix it; if it is only slow, {named('--time-limit')} "
            "SECONDS waits longer",
            last_messages=last,
        )
    return EngineError(
        "plugin_library",
        f"plugin library {loading}: it could not be opened within {limit:g} s: code that runs when it is opened "
        f"hangs{said}",
        f"The author of the library must fix it; if it is only slow, {named('--time-limit')} SECONDS waits longer",
        library=loading,
        cause="hang",
        last_messages=last,
    )
