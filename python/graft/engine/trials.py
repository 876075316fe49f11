"""The `trials` command: parses and builds many models in workers, which may crash or hang. A worker handles one request
at a time; a request is to parse or to build one model. A worker that dies or exceeds the time limit of its request is
replaced before the next request."""

from __future__ import annotations

import collections
import contextlib
import json
import secrets
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from graft.engine.build import build_plan, has_gpu, load_libraries
from graft.engine.events import EngineError, EventWriter, read_event
from graft.engine.flavors import Flavor, flavor_named
from graft.engine.folders import links_folder
from graft.engine.libraries import check_library
from graft.engine.options import allow_aliased_ports
from graft.engine.parsing import (
    check_model_file,
    describe_plugin_layer,
    messages_without_gpu,
    network_inputs,
    parse_model,
)
from graft.engine.profiles import add_profile, check_profiles
from graft.engine.session import Session, creator_key, describe_creator
from graft.engine.shapes import NetworkInput, ShapeRange, parse_shape_ranges, profile_ranges, suggested_ranges
from graft.engine.sizes import output_types, tensor_sizes
from graft.engine.supervisor import (
    CHILDREN,
    LAST_MESSAGES,
    LOADING_LIMIT,
    POLL_SECONDS,
    LineReader,
    crash_error_after,
    hang_error,
    has_ended,
    start_worker,
    worker_environment,
)
from graft.engine.targets import apply_targets

KEPT_SEVERITIES = ("internal_error", "error", "warning")
START_LIMIT = 120.0


def run_trials(request: dict[str, Any], events: EventWriter) -> None:
    """Runs in the worker: loads TensorRT, then the plugin libraries in the first line of standard input. Writes a result
    for the request in each further line until standard input ends."""
    events.writes_verbose = request["verbose"]
    session = Session(flavor_named(request["flavor"]), events)
    line = sys.stdin.readline()
    if not line:
        return
    libraries = load_libraries(session, json.loads(line))
    events.write({"event": "answer", "outcome": "ready", **registry_facts(session, libraries)})
    for line in sys.stdin:
        events.write({"event": "answer", **answer(session, request | json.loads(line))})


def registry_facts(session: Session, libraries: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the identity of TensorRT, the libraries, and every creator in the registry. Each creator has the path of
    the library that added it, or an empty path if it is TensorRT's own."""
    owners = {}
    for library in libraries:
        for creator in library["creators"]:
            owners[(creator["name"], creator["version"], creator["namespace"])] = library["path"]
    creators = [
        describe_creator(creator) | {"library": owners.get(creator_key(creator), "")}
        for creator in session.registry.all_creators
    ]
    return {"tensorrt": session.identity(), "plugin_libraries": libraries, "creators": creators}


def answer(session: Session, question: dict[str, Any]) -> dict[str, Any]:
    """Parses a model, builds it if the action is `build`, and returns the outcome: `accepted`, `refused` by the
    parser, `failed` in the build, or `shapes` for missing or unusable sizes or values of inputs."""
    outcomes = {"parse": "refused", "input": "refused", "build": "failed", "shapes": "shapes"}
    ranges: dict[str, ShapeRange] = {}
    tensors: dict[str, Any] = {}
    try:
        check_model_file(question["model"])
        network, _parser = parse_model(session, question["model"], question["plugin_override"])
        layers = [network.get_layer(index) for index in range(network.num_layers)]
        plugins = [p for p in (describe_plugin_layer(session.trt, layer) for layer in layers) if p]
        if question["action"] == "build":
            inputs = network_inputs(network)
            ranges = profile_ranges(inputs, question_ranges(inputs, question))
            types = output_types(network)
            build_once(session, network, ranges, question)
            tensors = {"types": types, "sizes": tensor_sizes(session, network, [ranges])}
        return {"outcome": "accepted", "plugins": plugins, "ranges": range_texts(ranges), "tensors": tensors}
    except EngineError as error:
        if error.kind not in outcomes:
            raise
        return {
            "outcome": outcomes[error.kind],
            "message": error.message,
            "next_step": error.next_step,
            "ranges": range_texts(ranges),
            **error.facts,
        }


def range_texts(ranges: dict[str, ShapeRange]) -> list[str]:
    """Returns each range as NAME=MIN..OPT..MAX."""
    return [f"{name}={found.text()}" for name, found in ranges.items()]


def question_ranges(inputs: list[NetworkInput], question: dict[str, Any]) -> dict[str, ShapeRange]:
    """Returns the ranges in the request `question` and, for inputs that need a range and have none in it, the ranges
    that the request suggests."""
    given = parse_shape_ranges(question["shapes"])
    suggested = question.get("suggested")
    if suggested is None:
        return given
    given = {name: found for name, found in given.items() if name in {each.name for each in inputs}}
    return given | suggested_ranges(inputs, given, suggested)


def build_once(session: Session, network: Any, ranges: dict[str, ShapeRange], question: dict[str, Any]) -> None:
    """Builds the network for the request `question`, with one optimization profile if there are `ranges`, otherwise
    without a profile. Raises EngineError if TensorRT does not build it."""
    config = session.owner.create_builder_config()
    apply_targets(session.trt, config, question["targets"], has_gpu())
    allow_aliased_ports(session, config, network)
    if ranges:
        add_profile(session, config, network, ranges)
    errors, warned = len(session.errors), len(session.warnings)
    build_plan(session, network, config, question["model"])
    if question.get("strict"):
        check_profiles(
            session.errors[errors:], session.warnings[warned:], question["model"], [ranges] if ranges else []
        )


class Trials:
    """The supervisor's side of trials: starts workers, one at a time, and sends them requests."""

    def __init__(self, request: dict[str, Any], flavor: Flavor, relay: Callable[[dict[str, Any]], None]) -> None:
        self._request = request
        self._flavor = flavor
        self._relay = relay
        self._ending = contextlib.ExitStack()
        self._links = self._ending.enter_context(links_folder())
        self._worker: TrialWorker | None = None
        self._libraries: list[str] | None = None
        self.workers = 0

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.end()
        self._ending.close()

    def prepare(self) -> None:
        """Starts a worker, which loads TensorRT, without waiting for it."""
        environment = worker_environment(self._flavor, self._links)
        self._worker = TrialWorker(self._request, environment, self._relay)
        self.workers += 1

    def start(self, loading_limit: float = LOADING_LIMIT, libraries: list[str] | None = None) -> dict[str, Any]:
        """Returns the first result of the worker, which is started unless `prepare` has done so.

        A worker of the command `trials` loads the plugin libraries `libraries`, and so does every later worker. Raises
        EngineError if the worker does not start, or if a plugin library takes longer than `loading_limit` seconds to
        open."""
        if self._worker is None:
            self.prepare()
        assert self._worker is not None
        if libraries is not None:
            self._libraries = libraries
        if self._libraries is not None:
            self._worker.write({"plugin_libraries": self._libraries})
        answer = self._worker.read_answer(START_LIMIT, loading_limit)
        if answer["outcome"] == "ready":
            return answer
        worker, self._worker = self._worker, None
        worker.end()
        if answer["outcome"] == "error":
            raise EngineError.from_event(answer["error"])
        if answer["outcome"] == "hung":
            raise hang_error(self._request["command"], worker.loading, answer["limit"], answer["last_messages"])
        raise crash_error_after(
            self._request["command"], answer["return_code"], answer["last_messages"], worker.loading
        )

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Returns the worker's result for a request, or the outcome `crashed` or `hung` with the worker's last messages."""
        if self._worker is not None and self._worker.has_ended:  # the worker died after its last result
            self._worker.end()
            self._worker = None
        if self._worker is None:
            self.start(question["limit"])
        assert self._worker is not None
        started = time.monotonic()
        self._worker.write(question)
        answer = self._worker.read_answer(question["limit"])
        if answer["outcome"] in ("crashed", "hung"):
            self._worker.end()
            self._worker = None
        if answer["outcome"] == "error":
            raise EngineError.from_event(answer["error"])
        return answer | {"seconds": round(time.monotonic() - started, 3)}


class TrialWorker:
    """A worker process, its two pipes, and the messages that it has written since its last result."""

    def __init__(
        self, request: dict[str, Any], environment: dict[str, str], relay: Callable[[dict[str, Any]], None]
    ) -> None:
        self._process, self._events = start_worker(environment)
        assert self._process.stdout is not None
        self._relay = relay
        self._reader = LineReader(
            {self._events.fileno(): self._on_event, self._process.stdout.fileno(): self._on_output}
        )
        self.loading: str | None = None
        self._loading_since = 0.0
        self._forget()
        self._token = secrets.token_hex()
        self.write(request | {"token": self._token})

    @property
    def has_ended(self) -> bool:
        return has_ended(self._process)

    def _forget(self) -> None:
        self._answer: dict[str, Any] | None = None
        self._messages: list[dict[str, str]] = []
        self._output: collections.deque[str] = collections.deque(maxlen=LAST_MESSAGES)
        self._last: collections.deque[str] = collections.deque(maxlen=LAST_MESSAGES)

    def write(self, item: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(item).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the worker died; read_answer reports how

    def read_answer(self, limit: float, loading_limit: float = LOADING_LIMIT) -> dict[str, Any]:
        """Returns the worker's result, or how it crashed or exceeded the limit. `limit` applies to the result, and
        `loading_limit` to each plugin library that the worker opens; both are in seconds."""
        started = time.monotonic()
        has_hung = False
        while self._answer is None and not has_hung and not has_ended(self._process):
            since, limit_now = (started, limit) if self.loading is None else (self._loading_since, loading_limit)
            left = since + limit_now - time.monotonic()
            has_hung = left <= 0
            self._reader.read(min(max(left, 0), POLL_SECONDS))
        if self._answer is None:
            code = CHILDREN.end(self._process)
        self._reader.drain()  # the output before the result is in the other pipe
        if self._answer is not None:
            answer = self._answer
        elif has_hung:
            answer = {"outcome": "hung", "limit": limit_now, "return_code": code}
        else:
            answer = {"outcome": "crashed", "return_code": code}
            answer["signal"] = signal.Signals(-code).name if code < 0 else None
        has_reason = answer["outcome"] == "shapes" or bool(answer.get("errors"))
        messages = messages_without_gpu(self._messages, has_reason)
        answer |= {"messages": messages, "output": list(self._output), "last_messages": list(self._last)}
        self._forget()
        return answer

    def _on_event(self, line: bytes) -> None:
        event = read_event(line, self._token)
        if event is None:
            return
        if event["event"] == "answer":
            self._answer = event
        elif event["event"] == "error":
            self._answer = {"outcome": "error", "error": event}
        elif event["event"] == "loading":
            self.loading = event["library"]
            self._loading_since = time.monotonic()
        elif event["event"] == "log":
            if event["severity"] != "verbose":
                self._last.append(event["message"])
            if event["severity"] in KEPT_SEVERITIES:
                self._messages.append({"severity": event["severity"], "message": event["message"]})
            self._relay(event)

    def _on_output(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if text:
            self._output.append(text)
            self._last.append(text)

    def end(self) -> None:
        CHILDREN.end(self._process)
        self._reader.close()
        self._events.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # the worker has not read a request
                    pipe.close()


def serve_trials(request: dict[str, Any], flavor: Flavor, events: EventWriter, verbose: bool) -> None:
    """Reads requests from standard input, one JSON object per line, and writes the result of each.

    The first request is `{"action": "start", "plugin_libraries": [...]}`. TensorRT is loaded before this request is
    read."""

    def relay(event: dict[str, Any]) -> None:
        if verbose:
            events.write(event)

    with Trials(request | {"verbose": verbose}, flavor, relay) as trials:
        trials.prepare()
        for line in sys.stdin:
            question = json.loads(line)
            if question["action"] == "start":
                for library in question["plugin_libraries"]:
                    check_library(library)
                answer = trials.start(question.get("limit", LOADING_LIMIT), question["plugin_libraries"])
            else:
                answer = trials.ask(question)
            events.write(answer | {"event": "answer", "workers": trials.workers})
    events.result("trials", workers=trials.workers)
