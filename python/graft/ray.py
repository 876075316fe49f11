# Calibration, comparisons and builds of engines on the machines of a Ray cluster. `graft ... --ray` runs this module.
"""graft.quantize, graft.verify and graft.auto on a cluster of Ray (pip install graft-tensorrt[ray]).

A data set is divided into parts, which are tasks of Ray. A part whose process dies is run again on another one. The
results have the same bytes as those of one process, however the data are divided.

Every machine needs this version of Graft, and sees the files of data, models and results under the same paths. Networks
and arrays in memory are sent. `address` is the address of the cluster: "auto" for the one of this machine,
"ray://HOST:10001", "HOST:6379", or "local" for processes on this machine. None: the cluster to which the program is
connected, or else "auto".
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from graft import __version__, _toolkit, arrays, samples, toolkit
from graft.errors import Cancelled, Error

if TYPE_CHECKING:
    from graft._toolkit import CancelToken, Model, QuantizeResult, VerifyResult
    from graft.toolkit import ModelLike, Path

    # A function that starts the work on the samples from a begin to an end, and returns the results of its parts.
    Start = Callable[[int, int], Iterator[bytes]]

# How often Ray runs a part again whose process died.
RETRIES = 5

# The number of parts for each process: several, so that a slow machine does not leave the others idle.
PARTS_PER_PROCESS = 4

# A part compiles the network, which takes as long as several samples.
LEAST_SAMPLES = 8

NETWORKS = (".onnx", ".pb", ".pbtxt", ".prototxt")


@dataclass(frozen=True)
class Built:
    """The result of graft.ray.auto for a network: the engine, whether it exists and every check passed, the report of
    `graft auto --json`, and the message of the error where there is no report."""

    model: str
    engine: str
    succeeded: bool
    report: dict[str, Any] | None = None
    error: str = ""


@dataclass(frozen=True)
class Work:
    """The settings of a call of quantize, verify or auto in this module, which every worker process receives."""

    version: str
    settings: dict[str, Any]
    libraries: list[str]


def quantize(
    model: ModelLike, *, address: str | None = None, part: int = 0, threads: int = 1, **arguments: Any
) -> QuantizeResult:
    """Quantizes to int8 or f8 as graft.quantize does, with the calibration on the machines of a cluster.

    Improvements of weights, and the choice and the judgment of nodes, run in this process; they use at most 128 samples.

    address: the address of the cluster, see graft.ray.
    part: the number of samples of a part; 0: such that each process of the cluster has 4 parts.
    threads: the number of threads, and of Ray's CPUs, of a part.
    arguments: those of graft.quantize. `data` is not an iterable of samples. `cache` does not apply, because the scales
        of a cache need no calibration.

    Raises the errors of graft.quantize; graft.Error (missing_tool) where Ray is not installed or the cluster does not
    reply.
    """
    given = _given(toolkit.quantize, model, **arguments)
    precision = given["precision"]
    if precision not in ("int8", "f8", "fp8"):
        raise Error(f"precision: found {precision}; only int8 and f8 have a calibration\nCall graft.quantize")
    _check_no_iterable(given["data"])
    with _cluster(address, given["cancel"]) as cluster:

        def start(
            prepared: Model, tensors: list[str], begin: int, end: int, *, data: arrays.Packed, data_files: list[str]
        ) -> Iterator[bytes]:
            settings = {name: given[name] for name in ("precision", "samples", "engine")}
            settings |= {"recipe": _absolute(given["recipe"]), "data_files": _toolkit.absolute_sources(data_files)}
            settings |= {"tensors": tensors, "threads": threads}
            return cluster.parts(_calibrate, begin, end, part, [prepared], data, settings, _libraries())

        return toolkit.quantize_given(given, start)


def verify(
    reference: ModelLike,
    candidate: ModelLike,
    *,
    address: str | None = None,
    part: int = 0,
    threads: int = 1,
    **arguments: Any,
) -> VerifyResult:
    """Compares two models on a data set as graft.verify does, with the runs on the machines of a cluster.

    Runs whose outputs exceed their tolerance are repeated in this process, which measures the noise floor, until an
    output differs. A model with a dynamic batch size has one run for all samples of arrays, which is not divided; a
    folder has one run for each file.

    address, part, threads: see graft.ray.quantize.
    arguments: those of graft.verify; `data` is required and not an iterable of samples, and `own_kernels` does not
        apply.

    Raises the errors of graft.verify and graft.ray.quantize.
    """
    given = _given(toolkit.verify, reference, candidate, **arguments)
    _check_no_iterable(given["data"])
    with _cluster(address, given["cancel"]) as cluster:

        def start(begin: int, end: int, *, data: arrays.Packed, data_files: list[str]) -> Iterator[bytes]:
            settings = {name: given[name] for name in ("samples", "relative", "absolute", "snr_db", "engine")}
            settings |= {"recipe": _absolute(given["recipe"]), "data_files": _toolkit.absolute_sources(data_files)}
            settings |= {"threads": threads}
            models = [given["reference"], given["candidate"]]
            return cluster.parts(_compare, begin, end, part, models, data, settings, _libraries())

        return toolkit.verify_given(given, start)


def auto(
    models: Path | Sequence[Path],
    folder: Path,
    *,
    address: str | None = None,
    threads: int = 1,
    gpus: float = 0,
    **arguments: Any,
) -> list[Built]:
    """Builds the engines of several networks as graft.auto does, each on a machine of a cluster.

    models: the paths of the networks, or a folder, all of whose networks are built. A Caffe network takes its weights
        from the .caffemodel of the same name.
    folder: the folder for the engines, which have the names of the networks, and for their folders of results.
    address: the address of the cluster, see graft.ray.
    threads, gpus: the number of Ray's CPUs and GPUs for each network.
    arguments: those of graft.auto, for all networks, without `weights` and `folder`.

    An error of one network does not end the others: it is in the list, which has the order of the networks. Raises
    graft.Error for networks of the same name, and where Ray is not installed or the cluster does not reply.
    """
    inspect.signature(toolkit.auto).bind("", "", **arguments)
    files = _networks(models)
    engines = _engines(files, pathlib.Path(folder))
    with _cluster(address) as cluster:
        jobs = [(file, engine, arguments) for file, engine in zip(files, engines, strict=True)]
        return list(cluster.all(_build, jobs, threads, gpus))


def _given(function: Callable[..., object], *positional: object, **arguments: Any) -> dict[str, Any]:
    """Returns all arguments of a call of the function by name, with their defaults. Raises TypeError for an argument
    that the function does not have."""
    bound = inspect.signature(function).bind(*positional, **arguments)
    bound.apply_defaults()
    return dict(bound.arguments)


def _check_no_iterable(data: Any) -> None:
    if samples.files_or_arrays(data) is None:
        raise TypeError(
            "data: an iterable of samples is not sent to other machines; pass a folder that all machines see, or arrays"
        )


def _absolute(path: Path | None) -> str:
    """Returns the absolute path, for processes with another working directory; an empty string for None."""
    return os.path.abspath(path) if path else ""


def _libraries() -> list[str]:
    """Returns the libraries of operators that this process has loaded."""
    return [_absolute(library) for library in _toolkit.loaded_libraries()]


def _networks(models: Path | Sequence[Path]) -> list[str]:
    if isinstance(models, str | os.PathLike):
        folder = pathlib.Path(models)
        if not folder.is_dir():
            raise Error(f"{folder}: this is not a folder\nPass a folder of networks, or a list of files")
        found = sorted(path for path in folder.iterdir() if path.suffix in NETWORKS)
        if not found:
            raise Error(f"{folder}: the folder has no network; a network is a file {', '.join(NETWORKS)}")
        return [os.path.abspath(path) for path in found]
    return [os.path.abspath(path) for path in models]


def _engines(files: Sequence[str], folder: pathlib.Path) -> list[str]:
    by_name: dict[str, str] = {}
    for file in files:
        name = pathlib.Path(file).stem
        if name in by_name:
            raise Error(f"{by_name[name]} and {file} have the same name, so that one engine would replace the other")
        by_name[name] = file
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(f"{folder}: {error.strerror}\nPass a folder that can be written to") from error
    return [os.path.abspath(folder / f"{name}.engine") for name in by_name]


# ---- Tasks, which run in the processes of the cluster


def _check_version(version: str) -> None:
    if version != __version__:
        raise Error(
            f"a machine of the cluster has Graft {__version__}, and the caller has {version}\nInstall the same version on "
            f"all machines: pip install graft-tensorrt=={version}",
            "missing_tool",
        )


def _calibrate(work: Work, begin: int, end: int, data: arrays.Packed, *models: tuple[bytes, str]) -> bytes:
    return _toolkit.calibrate_part(*_loaded(work, models), begin=begin, end=end, data=data, **work.settings)


def _compare(work: Work, begin: int, end: int, data: arrays.Packed, *models: tuple[bytes, str]) -> bytes:
    return _toolkit.verify_part(*_loaded(work, models), begin=begin, end=end, data=data, **work.settings)


def _loaded(work: Work, models: Iterable[tuple[bytes, str]]) -> list[Model]:
    _check_version(work.version)
    for library in work.libraries:
        toolkit.load_operators(library)
    return [toolkit.from_bytes(*model) for model in models]


def _build(version: str, model: str, engine: str, arguments: dict[str, Any]) -> Built:
    try:
        _check_version(version)
        weights = pathlib.Path(model).with_suffix(".caffemodel")
        given = {"weights": weights} if model.endswith(".prototxt") and weights.is_file() else {}
        result = toolkit.auto(model, engine, progress=False, **arguments | given)
    except (Error, TypeError) as error:
        return Built(model, engine, False, error=str(error))
    return Built(model, engine, result.succeeded, report=json.loads(result.to_json()))


def _run_program(version: str, model: str, engine: str, words: list[str]) -> Built:
    """Runs `graft auto` with `words`, in which {model} and {engine} are replaced by the paths, and returns the result.
    Raises graft.Error if `version` is not the version of this Graft."""
    _check_version(version)
    names = {"{model}": model, "{engine}": engine}
    command = [sys.executable, "-m", "graft", "auto", *(names.get(word, word) for word in words), "--json"]
    weights = pathlib.Path(model).with_suffix(".caffemodel")
    if model.endswith(".prototxt") and weights.is_file():
        command.append(str(weights))
    ended = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    succeeded = ended.returncode == 0
    errors = [line.removeprefix("error: ") for line in ended.stderr.splitlines() if line.startswith(("error: ", "  "))]
    return Built(model, engine, succeeded, error="" if succeeded else "\n".join(errors) or ended.stderr.strip())


# ---- The cluster


def _import_ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise Error("Ray is not installed\nInstall it with: pip install graft-tensorrt[ray]", "missing_tool") from None
    return ray


class _Cluster:
    """A connection to Ray."""

    def __init__(self, ray: Any, cancel: CancelToken | None) -> None:
        self._ray = ray
        self._cancel = cancel

    def parts(
        self,
        task: Callable[..., bytes],
        begin: int,
        end: int,
        size: int,
        models: Iterable[ModelLike],
        data: arrays.Packed,
        settings: dict[str, Any],
        libraries: list[str],
    ) -> Iterator[bytes]:
        """Divides the samples from `begin` to `end` (excluded) into parts of `size` samples (0: a default size), runs
        the task for each part, and yields the results in the order in which they arrive. `models`, `data`, `settings`
        and the operator `libraries` are sent to all parts."""
        threads = settings["threads"]
        if threads < 1 or size < 0:
            raise Error(f"found threads {threads} and part {size}; threads must be at least 1, and part at least 0")
        size = size or self._usual_size(end - begin, threads)
        shared = [self._ray.put(data)]
        for model in models:
            loaded = toolkit.load(model, progress=False)
            shared.append(self._ray.put((loaded.serialize(), loaded.source)))
        work = self._ray.put(Work(__version__, settings, libraries))
        remote = self._remote(task, threads)
        yield from self._results(
            remote.remote(work, first, min(first + size, end), *shared) for first in range(begin, end, size)
        )

    def all(
        self, task: Callable[..., Built], jobs: Iterable[Sequence[Any]], threads: int, gpus: float
    ) -> Iterator[Built]:
        """Runs the task for each job, each with this number of Ray's CPUs (`threads`) and GPUs, and yields the results
        in the order of the jobs."""
        remote = self._remote(task, threads, gpus)
        references = [remote.remote(__version__, *job) for job in jobs]
        with self._cancelled_on_failure(references):
            for reference in references:
                yield self._get(reference)

    def _usual_size(self, count: int, threads: int) -> int:
        processes = max(1, int(self._ray.cluster_resources().get("CPU", 1)) // threads)
        return max(LEAST_SAMPLES, math.ceil(count / (PARTS_PER_PROCESS * processes)))

    def _remote(self, task: Callable[..., Any], threads: int, gpus: float = 0) -> Any:
        # An exception of a task is an answer, such as an Error about a file. Only the death of a process is retried.
        options = {"num_cpus": threads, "num_gpus": gpus, "max_retries": RETRIES, "retry_exceptions": False}
        return self._ray.remote(**options, scheduling_strategy="SPREAD")(task)

    def _results(self, references: Iterable[Any]) -> Iterator[Any]:
        pending = list(references)
        with self._cancelled_on_failure(pending):
            while pending:
                if self._cancel is not None and self._cancel.is_cancelled:
                    raise Cancelled
                ready, others = self._ray.wait(pending, num_returns=1, timeout=1)
                pending[:] = others
                for reference in ready:
                    yield self._get(reference)

    @contextlib.contextmanager
    def _cancelled_on_failure(self, references: list[Any]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            for reference in references:
                self._ray.cancel(reference, force=True)
            raise

    def _get(self, reference: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, Error):
                raise error.cause from None
            if isinstance(error.cause, ModuleNotFoundError):
                raise Error(
                    f"a machine of the cluster cannot import Graft: {error.cause}\nInstall the same version on all "
                    f"machines: pip install graft-tensorrt[ray]=={__version__}",
                    "missing_tool",
                ) from None
            raise
        except (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError) as error:
            raise Error(
                f"a process of the cluster died {RETRIES + 1} times in the same part: {_first_line(error)}\nIf its memory "
                "was too small, use fewer processes on a machine, or smaller batches",
                "missing_tool",
            ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


@contextlib.contextmanager
def _cluster(address: str | None, cancel: CancelToken | None = None) -> Iterator[_Cluster]:
    """Yields a connection to the cluster at `address` (None: "auto"), and closes it at the end. If the program is
    already connected to a cluster, yields a connection to this one and leaves it open."""
    ray = _import_ray()
    if ray.is_initialized():
        yield _Cluster(ray, cancel)
        return
    try:
        # Messages of the processes would mix with the caller's output. Errors of tasks are raised by `get`.
        ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise Error(
            f"the cluster of Ray at {address or 'auto'} does not reply: {_first_line(error)}\nStart it with: ray start "
            "--head; or pass the address of a cluster",
            "missing_tool",
        ) from error
    try:
        yield _Cluster(ray, cancel)
    finally:
        ray.shutdown()


# ---- The helper process of `graft ... --ray`


def _read_arrays(file: str) -> arrays.Packed:
    """Reads the .npz file that the program wrote."""
    import numpy as np

    with np.load(file, allow_pickle=False) as archive:
        return arrays.pack(dict(archive.items()), "data")


class _Helper:
    """Replies to the requests of the program on its standard input. A request is one line of JSON. The first request
    starts the work; each further request waits for the result of one part."""

    def __init__(self, cluster: _Cluster, folder: pathlib.Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._parts: Iterator[Any] = iter(())
        self._count = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        work = request.get("work")
        if work == "auto":
            files = _networks(request["models"])
            engines = _engines(files, pathlib.Path(request["folder"]))
            jobs = [(file, engine, request["words"]) for file, engine in zip(files, engines, strict=True)]
            self._parts = self._cluster.all(_run_program, jobs, 1, 0)
            return {"parts": len(jobs)}
        if work:
            data = _read_arrays(request["data"]) if request["data"] else {}
            task = {"calibrate": _calibrate, "compare": _compare}[work]
            for library in request["libraries"]:
                toolkit.load_operators(library)
            settings = request["settings"] | {"threads": 1}
            samples_of_work = (request["begin"], request["end"], 0)
            self._parts = self._cluster.parts(
                task, *samples_of_work, request["models"], data, settings, request["libraries"]
            )
            return {}
        part = next(self._parts, None)
        if part is None:
            return {"end": True}
        if isinstance(part, Built):
            return vars(part)
        file = self._folder / str(self._count)
        self._count += 1
        file.write_bytes(part)
        return {"file": str(file)}


def main(requests: TextIO, replies: TextIO, address: str) -> int:
    def reply(event: dict[str, Any]) -> None:
        print(json.dumps(event), file=replies, flush=True)

    try:
        with tempfile.TemporaryDirectory(prefix="graft-ray-") as folder, _cluster(address) as cluster:
            helper = _Helper(cluster, pathlib.Path(folder))
            for line in requests:
                reply({"event": "answer", **helper.answer(json.loads(line))})
    except Error as error:
        code = {"answer_is_no": 1, "bad_input": 2, "missing_tool": 3}.get(error.kind, 4)
        message, _, next_step = str(error).partition("\n")
        reply({"event": "error", "kind": error.kind, "message": message, "next_step": next_step, "exit_code": code})
        return code
    return 0


if __name__ == "__main__":
    # Tasks are functions of the module graft.ray, which every process can import, and not of __main__.
    from graft import ray as module

    sys.exit(module.main(sys.stdin, sys.stdout, sys.argv[1]))
