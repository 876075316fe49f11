"""Converts TensorRT's nested build phases to a single fraction that never decreases. PhaseTree, which computes the
fraction, is separate from the monitor, so that it can be tested without TensorRT."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from graft.engine.events import EventWriter

SECONDS_BETWEEN_EVENTS = 0.05


@dataclass
class Phase:
    parent: str | None
    total: int
    done: int = 0


class PhaseTree:
    """The phases that have started and not finished, by name. A phase counts as one step of its parent."""

    def __init__(self) -> None:
        self._phases: dict[str, Phase] = {}
        self._reached = 0.0

    def start(self, name: str, parent: str | None, total: int) -> None:
        self._phases[name] = Phase(parent, max(total, 1))

    def step(self, name: str, step: int) -> None:
        if name in self._phases:
            self._phases[name].done = step + 1

    def finish(self, name: str) -> None:
        self._phases.pop(name, None)

    def get(self, name: str) -> Phase | None:
        return self._phases.get(name)

    def fraction(self) -> float:
        """Returns the completed fraction, 0 to 1. It never decreases, although TensorRT starts phases inside finished
        steps."""
        roots = [name for name, phase in self._phases.items() if phase.parent not in self._phases]
        now = max((self._fraction_of(name) for name in roots), default=self._reached)
        self._reached = min(1.0, max(self._reached, now))
        return self._reached

    def _fraction_of(self, name: str) -> float:
        phase = self._phases[name]
        children = [n for n, p in self._phases.items() if p.parent == name]
        inner = max((self._fraction_of(child) for child in children), default=0.0)
        return min(1.0, (phase.done + inner) / phase.total)


def make_monitor(trt: ModuleType, events: EventWriter, first: float, last: float) -> Any:
    """Returns a progress monitor whose fractions run from `first` to `last`, or None where this TensorRT has no
    progress monitors."""
    if not hasattr(trt, "IProgressMonitor"):
        return None

    class Monitor(trt.IProgressMonitor):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self._tree = PhaseTree()
            self._lock = threading.Lock()
            self._next_event = 0.0

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            with self._lock:
                self._tree.start(phase_name, parent_phase, num_steps)
                self._report(phase_name)

        def step_complete(self, phase_name: str, step: int) -> bool:
            with self._lock:
                self._tree.step(phase_name, step)
                self._report(phase_name)
            return True

        def phase_finish(self, phase_name: str) -> None:
            with self._lock:
                self._tree.finish(phase_name)

        def _report(self, name: str) -> None:
            now = time.monotonic()
            phase = self._tree.get(name)
            fraction = self._tree.fraction()
            if phase is None or now < self._next_event:
                return
            self._next_event = now + SECONDS_BETWEEN_EVENTS
            events.progress(name, phase.done, phase.total, first + fraction * (last - first), phase.parent)

    return Monitor()
