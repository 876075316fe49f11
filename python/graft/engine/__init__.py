# The engine driver: builds TensorRT engines through the Python bindings of the TensorRT that is installed.
"""Run it as `python -m graft.engine`. README.md beside this file describes commands, events and exit codes."""
