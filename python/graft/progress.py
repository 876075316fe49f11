# How far long work is: a bar of tqdm's where people look, or a function of the caller's.
"""`progress` of every function: None shows a bar where somebody looks and tqdm is installed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Progress = Callable[[float, str], object]


def is_watched() -> bool:
    """A terminal, or a notebook, whose standard error is none."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextlib.contextmanager
def shown(progress: Progress | bool | None, title: str) -> Iterator[Progress | None]:
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not is_watched()):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        yield None
        return
    with tqdm(total=100, desc=title, bar_format="{desc}: {percentage:3.0f} % {bar} {elapsed} {postfix}") as bar:

        def show(fraction: float, text: str) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.update(100 * fraction - bar.n)

        yield show
