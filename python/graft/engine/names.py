"""Translates the names of the driver's options in messages. The program that runs the driver may have another name for
an option, and an application may have a field instead. The environment variable GRAFT_OPTION_NAMES is a JSON object
that maps the driver's names to the caller's names."""

from __future__ import annotations

import functools
import json
import os


@functools.cache
def _names() -> dict[str, str]:
    try:
        names = json.loads(os.environ.get("GRAFT_OPTION_NAMES", "{}"))
    except ValueError:
        return {}
    return names if isinstance(names, dict) else {}


def named(option: str) -> str:
    """Returns the caller's name of an option of the driver, such as `--target`."""
    return str(_names().get(option, option))
