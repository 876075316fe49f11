# `graft bench --op`: measures the speed of the operators and of PyTorch in one process.
"""The implementation of `graft bench --op`; README.md in this folder describes the measurements and the output."""
