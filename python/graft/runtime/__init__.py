# ONNX Runtime as a CPU engine of Graft, in a process of its own.
"""Graft starts `python -m graft.runtime` with a socket as its standard input, and speaks over it what
src/runtime/worker/messages.hpp describes. Models arrive prepared; this program compiles and runs them."""
