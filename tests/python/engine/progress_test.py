# Tests that nested build phases become one fraction that never decreases and comes close to 1.
from __future__ import annotations

from graft.engine.progress import PhaseTree


def test_children_share_their_parents_step() -> None:
    tree = PhaseTree()
    tree.start("build", None, 4)
    assert tree.fraction() == 0.0
    tree.step("build", 0)
    assert tree.fraction() == 0.25
    tree.start("optimize", "build", 2)
    tree.step("optimize", 0)
    assert tree.fraction() == 0.375
    tree.finish("optimize")
    tree.step("build", 3)
    assert tree.fraction() == 1.0


def test_a_phase_opened_inside_a_finished_step_does_not_go_back() -> None:
    tree = PhaseTree()
    tree.start("build", None, 2)
    tree.start("inner", "build", 2)
    tree.step("inner", 1)
    reached = tree.fraction()
    tree.finish("inner")
    tree.start("again", "build", 5)
    assert tree.fraction() == reached == 0.5


def test_odd_calls_are_harmless() -> None:
    tree = PhaseTree()
    tree.step("never started", 3)
    tree.finish("never started")
    tree.start("empty", "unknown parent", 0)
    tree.step("empty", 0)
    assert tree.fraction() == 1.0
