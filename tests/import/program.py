# Runs a program for the tests of this folder, which start several at a time from threads.
import errno
import subprocess

# The tests of this folder check the program's output, not TensorRT's verdict on it.
WITHOUT_TENSORRT = {"inspect": ["--probe", "none"], "convert": ["--no-check"]}


def run_program(arguments, attempts=3):
    """Returns the finished process with its outputs as text, whatever its exit code."""
    command = [str(argument) for argument in arguments]
    try:
        command += WITHOUT_TENSORRT.get(command[1], [])
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        # In nested virtual machines, exec sometimes failed with "Bad address" (2 of some 5,000 starts, never from a
        # single thread). Nothing has run then, so the program is started again.
        if error.errno != errno.EFAULT or attempts == 1:
            raise
        return run_program(arguments, attempts - 1)
