"""The option --target: names of GPU architectures, and how they are set in the builder's configuration. TensorRT-RTX
builds an engine for several compute capabilities; the full TensorRT builds for the GPU of this machine."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from graft.engine.events import EngineError
from graft.engine.flavors import targets_of
from graft.engine.names import named


def parse_targets(texts: list[str]) -> list[str]:
    """Parses names such as `sm89,SM_120` or `current` and returns each target once, in the given order. Raises
    EngineError for other text, and for `current` together with other targets."""
    targets: list[str] = []
    for part in (p.strip().lower() for text in texts for p in text.split(",")):
        match = re.fullmatch(r"(?:sm_?)?(\d{2,3})", part)
        if part != "current" and match is None:
            raise EngineError(
                "target",
                f"{named('--target')} {part or repr(part)}: not a target",
                "Write current, or names such as sm89, joined by commas",
            )
        name = f"sm{match.group(1)}" if match else part
        if name not in targets:
            targets.append(name)
    if "current" in targets and len(targets) > 1:
        raise EngineError(
            "target",
            f"{named('--target')} {','.join(targets)}: current cannot be combined with other targets",
            "Name the generation of this machine's GPU instead of current",
        )
    return targets


def apply_targets(trt: ModuleType, config: Any, targets: list[str], gpu_present: bool) -> None:
    """Sets the compute capabilities in the builder's configuration. Without targets TensorRT's default is kept. Raises
    EngineError for a target that this TensorRT cannot build for, and for `current` unless `gpu_present`."""
    version = f"{trt.__name__} {trt.__version__}"
    can_choose = hasattr(trt, "ComputeCapability") and hasattr(config, "set_compute_capability")
    if not can_choose:
        if targets not in ([], ["current"]):
            raise EngineError(
                "target",
                f"{named('--target')} {','.join(targets)}: {version} builds only for the GPU of this machine",
                f"Use {named('--target')} current, or {named('--tensorrt')} rtx, which builds for other GPUs",
            )
        return
    if targets == ["current"] and not gpu_present:
        raise EngineError(
            "target",
            f"{named('--target')} current: this machine has no GPU that CUDA can use",
            f"Name the GPU generations to build for, for example {named('--target')} sm89,sm120",
        )
    offered = targets_of(trt)
    for target in targets:
        if target not in offered:
            raise EngineError(
                "target",
                f"{named('--target')} {target}: {version} cannot build for it; it builds for {', '.join(offered)}",
                "Choose one of these, or use the full TensorRT on a machine with this GPU",
                offered=offered,
            )
    if targets:
        config.num_compute_capabilities = len(targets)
        for index, target in enumerate(targets):
            if not config.set_compute_capability(getattr(trt.ComputeCapability, target.upper()), index):
                raise EngineError(
                    "target", f"{named('--target')} {target}: {version} refuses this target", "Omit this target"
                )
