"""A worker process, which is the only process in which TensorRT runs. supervisor.py starts it. The worker reads a JSON
request from the first line of standard input and writes events to the file descriptor whose number is its argument."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from graft.engine.build import run_build, run_parse
from graft.engine.conformance import run_check
from graft.engine.events import EngineError, EventWriter, open_files_error
from graft.engine.plugins import run_plugins, run_probe
from graft.engine.trials import run_trials

COMMANDS: dict[str, Callable[[dict[str, Any], EventWriter], None]] = {
    "build": run_build,
    "check": run_check,
    "parse": run_parse,
    "plugins": run_plugins,
    "probe": run_probe,
    "trials": run_trials,
}


def die_with_parent() -> None:
    """Requests SIGKILL for this process when the supervisor dies: a build can take hours and must not outlive a
    supervisor that was killed."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def main() -> None:
    die_with_parent()
    request = json.loads(sys.stdin.readline())
    events = EventWriter(int(sys.argv[1]), request.pop("token"))
    try:
        try:
            COMMANDS[request["command"]](request, events)
        except OSError as error:
            raise open_files_error(error) from error
    except EngineError as error:
        events.write(error.event())
    except MemoryError:
        events.write(EngineError("crash", "not enough memory", "Use a machine with more memory").event())
    except Exception as error:  # the supervisor has to receive every error
        events.write(
            EngineError(
                "internal",
                f"{type(error).__name__}: {error}",
                "This is a defect in Graft: report it with the traceback",
                traceback=traceback.format_exc(),
            ).event()
        )
    sys.stdout.flush()
    sys.stderr.flush()
    # All results are written; a destructor of TensorRT could only turn a success into a crash.
    os._exit(0)


if __name__ == "__main__":
    main()
