# graft.quantize: `graft quantize` from Python, with data and a metric of the caller's.
"""Nothing is computed here: the program does it. It reads what it calibrates with from files."""

from __future__ import annotations

import itertools
import os
import pathlib
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graft.program import Error, Metric, Progress, run_program

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    Path = str | os.PathLike[str]
    Sample = Mapping[str, ArrayLike] | ArrayLike
    Data = Path | Mapping[str, ArrayLike] | np.ndarray | Iterable[Sample]


def quantize(
    model: Path,
    output: Path,
    precision: str = "int8",
    *,
    data: Data | None = None,
    recipe: Path | None = None,
    samples: int | None = None,
    method: str | None = None,
    percentile: float | None = None,
    metric: str | Metric | None = None,
    max_drop: float | None = None,
    limit: float | None = None,
    judged: int | None = None,
    keep: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    improve: str | Sequence[str] = (),
    rest: str | None = None,
    cache: Path | None = None,
    write_cache: Path | None = None,
    state: Path | None = None,
    typed_io: bool = False,
    report: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes `model`, an ONNX file, to `output` in another precision; returns what `graft quantize --json` says.

    Options are those of the command (`graft quantize --help`), which decides what goes with what; None leaves one out.

    data: what to decide by. A path: what --data takes. A NumPy array, or a dict with an array for each input: the first
        axis counts samples. For int8 also any other iterable, a generator too, of samples: each with what the model
        takes in one run, as a dict of arrays or as the array of the only input. They are taken one at a time, at most
        `samples` of them where that is given, and kept as files in a temporary folder (TMPDIR) until the call ends, since
        the program reads them more than once: they have to fit on the disk, not in memory.
    metric: how good a model is; more is better. A function that gets the path of an ONNX file, which it may read until
        it returns, and returns a number; or a command, as --metric. It is asked for the f32 network, then for each model
        that is tried. It is called in this thread, and what it raises ends the program and is raised here.
    max_drop: how much the metric may fall. Layers that lose most stay in f32 until that is met; where nothing helps, "met"
        in the result is False.
    progress: called now and then with what is being done and which part of it is done, 0 to 1.

    Raises graft.Error with the program's message where that fails; nothing is written then.
    """
    arguments = ["quantize", os.fspath(model), "-o", os.fspath(output), "--precision", precision]
    given = {
        "--recipe": recipe,
        "--samples": samples,
        "--method": method,
        "--percentile": percentile,
        "--max-drop": max_drop,
        "--limit": limit,
        "--judged": judged,
        "--cache": cache,
        "--write-cache": write_cache,
        "--state": state,
        "--rest": rest,
        "--report": report,
    }
    for name, value in given.items():
        if value is not None:
            arguments += [name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    for name, patterns in {"--keep": keep, "--only": only, "--improve": improve}.items():
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            arguments += [name, pattern]
    if typed_io:
        arguments.append("--typed-io")
    if isinstance(metric, str):
        arguments += ["--metric", metric]
    with tempfile.TemporaryDirectory(prefix="graft-data-") as folder:
        if data is not None:
            is_sampled = precision == "int8"
            arguments += ["--data", path_of_data(data, pathlib.Path(folder), is_sampled, samples)]
        return run_program(arguments, metric if callable(metric) else None, progress)


def path_of_data(data: Data, folder: pathlib.Path, is_sampled: bool, samples: int | None) -> str:
    """Where the program reads them: what is no path is written into the folder."""
    import numpy as np

    if isinstance(data, str | os.PathLike):
        return os.fspath(data)
    if isinstance(data, Mapping | np.ndarray):
        return write_arrays(folder / "data", data)
    if not is_sampled:
        raise Error("data: samples one by one are for int8; give an array, or a dict with one for each input")
    count = 0
    for sample in itertools.islice(data, samples):
        write_arrays(folder / f"sample_{count:09}", sample)
        count += 1
    if count == 0:
        raise Error("data: there is no sample to calibrate with")
    return str(folder)


def write_arrays(path: pathlib.Path, sample: Sample) -> str:
    """NumPy's files; its savez would take inputs named like its parameters for those."""
    import numpy as np

    if not isinstance(sample, Mapping):
        np.save(path.with_suffix(".npy"), np.asarray(sample), allow_pickle=False)
        return str(path.with_suffix(".npy"))
    with zipfile.ZipFile(path.with_suffix(".npz"), "w") as archive:
        for name, array in sample.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return str(path.with_suffix(".npz"))
