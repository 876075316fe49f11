"""Distinguishes the forms in which callers pass data: arrays by input name, or files that the toolkit reads. Samples of
an iterable are written as NumPy files to a temporary folder, because the toolkit reads them more than once."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from graft import arrays
from graft.errors import Error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    class SupportsArray(Protocol):
        def __array__(self, *arguments: Any, **keywords: Any) -> NDArray[Any]: ...

    Path = str | os.PathLike[str]
    Sample = Mapping[str, ArrayLike] | ArrayLike
    Data = Path | Sequence[Path] | Mapping[str, ArrayLike] | NDArray[np.generic] | SupportsArray | Iterable[Sample]


def files_or_arrays(data: Data | None, what: str = "data") -> tuple[arrays.Packed, list[str]] | None:
    """Returns arrays as tensors by input name, with an empty list; or an empty dict, with a list of files as `--data`
    names them. A single array, for a network with one input, gets the empty name. Returns None for other data, which
    may be an iterable of samples. `what` names the data in errors."""
    import numpy as np

    if data is None:
        return {}, []
    if isinstance(data, Mapping):
        return arrays.pack(data, what), []
    if isinstance(data, str | os.PathLike):
        return {}, [os.fspath(data)]
    if hasattr(data, "__array__"):  # arrays of NumPy, and tensors of PyTorch on the CPU
        return arrays.pack({"": np.asarray(data)}, what), []
    if isinstance(data, list | tuple) and data and all(isinstance(each, str | os.PathLike) for each in data):
        return {}, [os.fspath(each) for each in data]
    return None


@contextlib.contextmanager
def opened(data: Data | None, limit: int = 0) -> Iterator[tuple[arrays.Packed, list[str]]]:
    """Yields tensors and files as files_or_arrays returns them. At most `limit` samples of an iterable (0: all) are
    written as files to a temporary folder, which exists until the context ends. Raises TypeError for other data."""
    found = files_or_arrays(data)
    if found is not None:
        yield found
        return
    if not isinstance(data, Iterable):
        raise TypeError(
            f"data: found {type(data).__name__}; pass a dict of arrays, an array if the model has one input, a file or "
            "folder, or an iterable of samples"
        )
    with tempfile.TemporaryDirectory(prefix="graft-data-") as folder:
        write_samples(cast("Iterable[Sample]", data), pathlib.Path(folder), limit)  # other forms were found above
        yield {}, [folder]


def write_samples(data: Iterable[Sample], folder: pathlib.Path, limit: int) -> None:
    """Writes at most `limit` samples (0: all), each to a file of its own. Only one sample at a time is in memory.
    Raises graft.Error where there is no sample."""
    count = 0
    for sample in itertools.islice(data, limit or None):
        write_sample(folder / f"sample_{count:09}", sample)
        count += 1
    if count == 0:
        raise Error("data: the iterable contains no sample")


def write_sample(path: pathlib.Path, sample: Sample) -> None:
    """Writes a sample as an .npz file, or as an .npy file where it is a single array. numpy.savez is not used because
    an input with the name of one of its parameters, such as `file`, would be passed as this parameter."""
    import numpy as np

    arrays.pack(sample if isinstance(sample, Mapping) else {"": sample}, "data")  # checks the types
    if not isinstance(sample, Mapping):
        np.save(path.with_suffix(".npy"), np.asarray(sample), allow_pickle=False)
        return
    with zipfile.ZipFile(path.with_suffix(".npz"), "w") as archive:
        for name, array in sample.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
