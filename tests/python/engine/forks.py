# Runs commands of the engine driver one after another, in forks of this process, which has imported all modules.
"""usage: forks.py FLAVOR: reads lines, each a JSON list of the driver's arguments, and answers each with a line, a JSON
list: exit code, stdout, stderr.

Driver and worker are separate processes as usual, which share only what this process had imported before. Starting them
anew takes ten times as long as building an engine of one layer.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
from typing import Any

from graft.engine import cli, supervisor, worker
from graft.engine.flavors import flavor_named, import_flavor

START = subprocess.Popen


def start_forked(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Forks this process to run the worker's module, instead of a new interpreter."""
    events = command[-1]

    def work() -> None:
        # One of these is the pipe on which the parent waits for the start of a program.
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            if descriptor > 2 and descriptor != int(events):
                with contextlib.suppress(OSError):  # the descriptor of the listing itself is closed already
                    os.close(descriptor)
        os.environ.clear()
        os.environ.update(options["env"])
        sys.argv = [command[0], events]
        worker.main()

    assert "graft.engine.worker" in command
    return START(command, preexec_fn=work, **options)


def run(arguments: list[str], folder: pathlib.Path) -> list[Any]:
    names = [folder / "out", folder / "err"]
    child = os.fork()
    if child == 0:
        for number, name in enumerate(names, 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = 1
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:  # never continues with the parent's code
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return [os.waitstatus_to_exitcode(status), *(name.read_text() for name in names)]


def main() -> None:
    import_flavor(flavor_named(sys.argv[1]))
    supervisor.subprocess.Popen = start_forked  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            print(json.dumps(run(json.loads(line), pathlib.Path(folder))), flush=True)


if __name__ == "__main__":
    main()
