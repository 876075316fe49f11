# How far long work is: a bar of tqdm's where people look, or a function of the caller's.
"""`progress` of every function: None shows a bar where standard error is a terminal and tqdm is installed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Progress = Callable[[float, str], object]


@contextlib.contextmanager
def shown(progress: Progress | bool | None, title: str) -> Iterator[Progress | None]:
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
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
