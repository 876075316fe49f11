# The progress of long work: a bar of tqdm on a terminal or in a notebook, or a function of the caller.
"""The argument `progress` of the toolkit's functions: a function is called with the progress; True shows a bar; None
shows one on a terminal or in a notebook; False shows nothing. Without tqdm there is no bar."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator

Progress = Callable[[float, str], object]


def is_notebook() -> bool:
    """Returns whether the process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


def is_watched() -> bool:
    """Returns whether a person sees the progress: standard error is a terminal, or the process is the kernel of a
    notebook."""
    return sys.stderr.isatty() or is_notebook()


@contextlib.contextmanager
def shown(progress: Progress | bool | None, title: str) -> Iterator[Progress | None]:
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not is_watched()):
        yield None
        return
    try:
        # In a notebook without ipywidgets tqdm warns that its bar is text.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ModuleNotFoundError:
        yield None
        return
    layout = "{desc}: {percentage:3.0f} % {bar} {elapsed} {postfix}"
    # A notebook shows standard error in a red box.
    file = sys.stdout if is_notebook() else sys.stderr
    with tqdm(total=100, desc=title, bar_format=layout, file=file) as bar:

        def show(fraction: float, text: str) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.update(100 * fraction - bar.n)

        yield show
