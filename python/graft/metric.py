# What `graft quantize --metric` runs for a metric that is a Python function: it asks the process that has the function.
"""metric.py DESCRIPTOR MODEL.onnx: writes the name to the socket, and prints what comes back."""

import os
import socket
import sys


def main(descriptor: str, model: str) -> int:
    with socket.socket(fileno=int(descriptor)) as caller:
        caller.send(os.fsencode(model))
        answer = caller.recv(100)
    print(answer.decode())
    return 0 if answer else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
