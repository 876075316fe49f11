"""Reads the inputs with which a model is quantized or compared, in any of the forms that callers have. Samples of an
iterable are written as NumPy files to a temporary folder, because calibration reads them more than once."""

from __future__ import annotations

import itertools
import os
import pathlib
import zipfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from graft.errors import Error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from graft._toolkit import CutNetwork, Model

    class SupportsArray(Protocol):
        def __array__(self, *arguments: Any, **keywords: Any) -> NDArray[Any]: ...

    Path = str | os.PathLike[str]
    Sample = Mapping[str, ArrayLike] | ArrayLike
    Data = Path | Mapping[str, ArrayLike] | NDArray[np.generic] | SupportsArray | Iterable[Sample]


def arrays_of(
    data: Data | None, model: Model | CutNetwork, *, is_file_allowed: bool = True
) -> Mapping[str, ArrayLike] | None:
    """Returns the arrays by input name where the data are a mapping, an array for the only input, or an .npz file, and
    None for other data. Raises graft.Error for an array where the model has several inputs, and for an unreadable
    file."""
    import numpy as np

    if data is None:
        return {}
    if isinstance(data, Mapping):
        return data
    if isinstance(data, str | os.PathLike):
        return read_npz(pathlib.Path(data)) if is_file_allowed else None
    if hasattr(data, "__array__"):  # arrays of NumPy, and tensors of PyTorch on the CPU
        names = [port.name for port in model.inputs]
        if len(names) != 1:
            raise Error(
                "data: an array is allowed only for a model with one input; this model has the inputs "
                f"{', '.join(names)}\nPass a dict of arrays"
            )
        return {names[0]: np.asarray(data)}
    return None


def read_npz(file: pathlib.Path) -> dict[str, ArrayLike]:
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as archive:
            if isinstance(archive, np.ndarray):
                raise Error(
                    f"data {file}: the file has one array without a name\nPass a dict of arrays, or an .npz file"
                )
            return dict(archive.items())
    except (OSError, ValueError) as error:
        raise Error(f"data {file}: {error}") from error


def write_samples(data: Iterable[Sample], folder: pathlib.Path, limit: int) -> None:
    """Writes at most `limit` samples (0: all), each to a file of its own. Only one sample at a time is in memory.
    Raises graft.Error where there is no sample."""
    count = 0
    for sample in itertools.islice(data, limit or None):
        write_sample(folder / f"sample_{count:09}", sample)
        count += 1
    if count == 0:
        raise Error("data: the iterable contains no calibration sample")


def write_sample(path: pathlib.Path, sample: Sample) -> None:
    """Writes a sample as an .npz file, or as an .npy file where it is a single array. numpy.savez is not used because
    an input with the name of one of its parameters, such as `file`, would be passed as this parameter."""
    import numpy as np

    if not isinstance(sample, Mapping):
        np.save(path.with_suffix(".npy"), np.asarray(sample), allow_pickle=False)
        return
    with zipfile.ZipFile(path.with_suffix(".npz"), "w") as archive:
        for name, array in sample.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
