# How messages call the driver's options.
"""The program that runs the driver may know an option by another name, and an application as a field: GRAFT_OPTION_NAMES
in the environment, a JSON object, has the names by the driver's own."""

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
    """What the user knows `--target` by."""
    return str(_names().get(option, option))
