"""The engine driver: builds TensorRT engines through the Python bindings of the installed TensorRT. `python -m
graft.engine` runs the driver. README.md in this folder describes commands, events and exit codes."""
