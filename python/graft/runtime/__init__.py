"""Runs ONNX Runtime as a CPU engine of Graft, in a process of its own. Graft starts `python -m graft.runtime` with a
socket as its standard input and sends over this socket the messages that src/runtime/worker/messages.hpp describes.
Graft prepares the models; this program compiles and runs them."""
