"""Adds optimization profiles to the builder's configuration, and finds TensorRT's messages about unusable profiles. The
commands `build` and `trials` use this module in a worker."""

from __future__ import annotations

import re
from typing import Any

from graft.engine.events import EngineError
from graft.engine.names import named
from graft.engine.session import Session
from graft.engine.shapes import ShapeRange, dims_text

# The warning "Profile kMAX values are not self-consistent" and the error "kOPT values for profile 0 violate shape
# constraints".
UNUSABLE_PROFILE = re.compile(
    r"k(?P<end>MIN|OPT|MAX) values (?:are not self-consistent|for profile (?P<number>\d+) violate shape constraints)"
)
PROFILE_ENDS = {"MIN": "minimum", "OPT": "optimum", "MAX": "maximum"}
# Any other error about a profile: "contradictory IOptimizationProfile kMIN/kMAX constraints".
ABOUT_PROFILES = re.compile(r"optimization ?profile|\bprofile \d", re.I)
# Errors about dimensions with the same name, which TensorRT requires to be equal.
ABOUT_NAMES = re.compile(r"[Dd]imensions with (?:this )?name")


def add_profile(session: Session, config: Any, network: Any, ranges: dict[str, ShapeRange]) -> None:
    profile = session.owner.create_optimization_profile()
    tensors = {network.get_input(i).name: network.get_input(i) for i in range(network.num_inputs)}
    before = len(session.errors)
    for name, found in ranges.items():
        is_values = bool(tensors[name].is_shape_tensor)
        setter = profile.set_shape_input if is_values else profile.set_shape
        try:
            setter(name, found.minimum, found.optimum, found.maximum)
        except (RuntimeError, ValueError, TypeError) as error:
            raise refused_profile({name: found}, str(error)) from error
    if config.add_optimization_profile(profile) < 0 or len(session.errors) > before:
        raise refused_profile(ranges, "; ".join(session.errors[before : before + 1]))


def refused_profile(ranges: dict[str, ShapeRange], reason: str) -> EngineError:
    described = " ".join(f"{name}={found.text()}" for name, found in ranges.items())
    return EngineError(
        "shapes", f"{named('--shapes')} {described}: TensorRT refuses these ranges: {reason}", "Change the ranges"
    )


def check_profiles(errors: list[str], warnings: list[str], model: str, profiles: list[dict[str, ShapeRange]]) -> None:
    """Raises EngineError for the first of TensorRT's messages, in `errors` and then in `warnings`, that says that the
    network cannot compute with the shapes of a profile. Does nothing without profiles."""
    if not profiles:
        return
    for complaint in [*errors, *warnings]:
        match = UNUSABLE_PROFILE.search(complaint)
        if match is not None:
            number = match.group("number")
            # The warning does not name the profile.
            meant = [profiles[int(number)]] if number and int(number) < len(profiles) else profiles
            raise unusable_profile(model, complaint, meant, match.group("end"))
    for complaint in errors:
        if ABOUT_PROFILES.search(complaint):
            raise unusable_profile(model, complaint, profiles, None)


def unusable_profile(
    model: str, complaint: str, profiles: list[dict[str, ShapeRange]], which: str | None
) -> EngineError:
    """Returns the error for shapes with which the network cannot compute, with TensorRT's message `complaint`.
    `profiles` are the profiles that the message may mean. `which` is MIN, OPT or MAX, or None where the message is
    about whole ranges."""
    end = PROFILE_ENDS[which] if which is not None else None

    def text(found: ShapeRange) -> str:
        return dims_text(getattr(found, end)) if end is not None else found.text()

    shapes = " or ".join(" ".join(f"{name}={text(found)}" for name, found in ranges.items()) for ranges in profiles)
    what = f"the {end} shapes" if end is not None else "the ranges"
    next_step = (
        "The node that TensorRT names has a fixed size where the input is dynamic, which exporters often do with the "
        f"batch: export the model with this size dynamic, or set {named('--shapes')} to a range that the node supports"
    )
    if ABOUT_NAMES.search(complaint):
        next_step = (
            "Dimensions with the same name must have the same size: set equal ranges for these dimensions of the "
            f"inputs in {named('--shapes')}"
        )
    elif end is None:
        next_step = f"Change the ranges of {named('--shapes')}"
    return EngineError(
        "shapes",
        f"{model}: the network does not work with {what} of the profile, {shapes}: {complaint}",
        next_step,
        profile_end=end,
    )
