# Runs a program for the tests of this folder; they start several at a time from threads.
import errno
import subprocess

# The tests of this folder are about what the program makes, and not about what TensorRT says of it.
WITHOUT_TENSORRT = {"inspect": ["--probe", "none"], "convert": ["--no-check"]}


def run_program(arguments, attempts=3):
    """The finished process with its two outputs as text, whatever its exit code."""
    command = [str(argument) for argument in arguments]
    try:
        command += WITHOUT_TENSORRT.get(command[1], [])
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        # On virtual machines inside others, exec failed now and then with "Bad address" (2 of some 5,000 starts, never
        # from a single thread). Nothing has run then, so it is started again.
        if error.errno != errno.EFAULT or attempts == 1:
            raise
        return run_program(arguments, attempts - 1)
