# near_miss_cases.py - shared parts of the operators' lists of near misses (src/ops/<op>/<op>_near_misses.py).
from typing import NamedTuple

IMAGE = "(float[N,4,3,5] x) => (float[N,4,3,5] y)"
TWO_INPUTS = "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,5] y)"


class Miss(NamedTuple):
    """A network that resembles an operator."""

    name: str
    reason: str
    words: str | None  # words in the message of `convert --explain`; None if it prints no message
    signature: str
    nodes: str  # in ONNX's text form
    has_same_values: bool = False  # has the operator's values, and must not be fused for another reason


def miss(*fields):
    return Miss(*fields)


def same(*fields):
    return Miss(*fields, has_same_values=True)


def constants(text):
    """Returns the initializers of a text, which are separated by semicolons, by name."""
    return {part.split()[1]: part.strip() for part in text.split(";")}


# A network gets those of these initializers, and of its operator's, that its text names.
CONSTANTS = constants("float eps = {1e-12}; float eps_large = {1e-3}; float eps_negative = {-1e-3}")
