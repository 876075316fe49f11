# `graft bench --op`: the operators' speed beside PyTorch's, in one process.
"""The front of `graft bench --op`; README.md beside this file says what it measures and what it writes."""
