"""`plugins --check`: checks whether the creators of plugin libraries, and the plugins that they create, keep TensorRT's
contract. The checks cover what can be checked without running a plugin: TensorRT's bindings return the names and the
capabilities of a C++ plugin and forward no other call. `trials` checks with a model whether an engine with the plugin
builds. Each check is a separate request to a worker with a real plugin registry, so that a plugin that ends the
process, or never returns, only fails this check."""

from __future__ import annotations

import array
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graft.engine.build import load_libraries
from graft.engine.events import EventWriter
from graft.engine.flavors import Flavor, flavor_named
from graft.engine.session import Session, creator_generation, creator_key
from graft.engine.supervisor import LOADING_LIMIT, QUIET_LIMITS
from graft.engine.trials import Trials, registry_facts

# The value 1 for fields of unknown meaning. By the field's type: the type code of the module `array`, and the element
# that is 1.
ONE_OF_TYPE = {
    "FLOAT16": ("H", 0x3C00),
    "BF16": ("H", 0x3F80),
    "FLOAT32": ("f", 1.0),
    "FLOAT64": ("d", 1.0),
    "INT8": ("b", 1),
    "INT16": ("h", 1),
    "INT32": ("i", 1),
    "INT64": ("q", 1),
}
CHECKED_GENERATION = "V3"


class Broken(Exception):
    """The exception of a check that fails: the plugin breaks a rule of TensorRT's contract."""


class NotChecked(Exception):
    """The exception of a check that cannot run; the text is the reason."""


@dataclass
class Subject:
    """The creator that is checked, and the plugins that it creates."""

    session: Session
    creator: Any

    @property
    def key(self) -> tuple[str, str, str]:
        return creator_key(self.creator)

    def create(self, with_ones: bool) -> Any:
        """Creates a plugin with no fields or, if `with_ones`, with the value 1 in each field. Returns None where the
        creator refuses."""
        trt = self.session.trt
        fields = ones(trt, self.creator) if with_ones else []
        return self.creator.create_plugin("graft_check", trt.PluginFieldCollection(fields), trt.TensorRTPhase.BUILD)

    def plugin(self) -> Any:
        """Returns a plugin of a creator that has passed the check `creation`."""
        return self.create(False) or self.create(True)

    def capability(self, plugin: Any, name: str) -> Any:
        found = plugin.get_capability_interface(getattr(self.session.trt.PluginCapabilityType, name))
        if found is None:
            raise Broken(f"getCapabilityInterface returns null for {name}")
        return found

    def identity(self, plugin: Any) -> tuple[str, str, str]:
        core = self.capability(plugin, "CORE")
        return core.plugin_name, core.plugin_version, core.plugin_namespace


def ones(trt: Any, creator: Any) -> list[Any]:
    """Returns a plugin field with the value 1 for each field of the creator, except fields of types that are not in
    ONE_OF_TYPE."""
    fields = []
    for field in creator.field_names or []:
        if field.type.name in ONE_OF_TYPE:
            code, one = ONE_OF_TYPE[field.type.name]
            fields.append(trt.PluginField(field.name, memoryview(array.array(code, [one])), field.type))
    return fields


def check_name(subject: Subject) -> str:
    name, version, namespace = subject.key
    for what, text in (("name", name), ("version", version)):
        if not text:
            raise Broken(f"the creator's {what} is empty")
    for what, text in (("name", name), ("version", version), ("namespace", namespace)):
        if not (text.isascii() and text.isprintable()):
            raise Broken(f"the creator's {what} has characters that are not printable ASCII: {text!r}")
    return ""


def described_fields(subject: Subject) -> list[tuple[str, str, int]]:
    return [(field.name, field.type.name, field.size) for field in subject.creator.field_names or []]


def check_fields(subject: Subject) -> str:
    fields = described_fields(subject)
    names = [name for name, _, _ in fields]
    if "" in names:
        raise Broken(f"getFieldNames: field {names.index('')} has no name")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Broken(f"getFieldNames lists {', '.join(twice)} twice")
    negative = [name for name, _, size in fields if size < 0]
    if negative:
        raise Broken(f"getFieldNames: the length of {', '.join(negative)} is negative")
    if described_fields(subject) != fields:
        raise Broken("getFieldNames lists other fields when it is called again")
    return ""


def check_creation(subject: Subject) -> str:
    """Returns the fields with which the creator creates a plugin: "none" if it needs no fields, or "ones" if it needs
    the value 1 in each. Raises NotChecked where it creates no plugin in either case."""
    for with_ones, fields in ((False, "none"), (True, "ones")):
        if subject.create(with_ones) is not None:
            return fields
    said = f": {subject.session.errors[-1]}" if subject.session.errors else ""
    raise NotChecked(f"createPlugin creates no plugin without fields or with 1 in each field{said}")


def check_capabilities(subject: Subject) -> str:
    plugin = subject.plugin()
    for name in ("CORE", "BUILD", "RUNTIME"):
        subject.capability(plugin, name)
    return ""


def check_identity(subject: Subject) -> str:
    """Checks that a creator has the plugin's names: TensorRT writes them into the engine and looks up a creator by
    them."""
    says = subject.identity(subject.plugin())
    if says not in {creator_key(creator) for creator in subject.session.registry.all_creators}:
        raise Broken(
            f"the plugin's name is {identity_text(says)}, for which no creator is registered (the plugin's creator is "
            f"{identity_text(subject.key)}): an engine with this plugin does not load"
        )
    return ""


def identity_text(identity: tuple[str, str, str]) -> str:
    name, version, namespace = identity
    return f"`{name}` version `{version}` in " + (f"namespace `{namespace}`" if namespace else "no namespace")


CHECKS: dict[str, Callable[[Subject], str]] = {
    "name": check_name,
    "fields": check_fields,
    "creation": check_creation,
    "capabilities": check_capabilities,
    "identity": check_identity,
}


def run_check(request: dict[str, Any], events: EventWriter) -> None:
    """Runs in the worker: reports when the libraries are loaded, then runs the check of each line of
    standard input."""
    session = Session(flavor_named(request["flavor"]), events)
    libraries = load_libraries(session, request)
    creators = {creator_key(creator): creator for creator in session.registry.all_creators}
    events.write({"event": "answer", "outcome": "ready", **registry_facts(session, libraries)})
    for line in sys.stdin:
        question = json.loads(line)
        subject = Subject(session, creators[tuple(question["creator"])])
        events.write({"event": "answer", **answer(subject, question["check"])})


def answer(subject: Subject, check: str) -> dict[str, str]:
    if creator_generation(subject.creator) != CHECKED_GENERATION:
        generation = creator_generation(subject.creator)
        why = f"the creator's plugins are {generation}; the checks are for {CHECKED_GENERATION} plugins"
        return {"outcome": "not checked", "detail": why}
    try:
        return {"outcome": "passed", "detail": CHECKS[check](subject)}
    except Broken as broken:
        return {"outcome": "failed", "detail": str(broken)}
    except NotChecked as reason:
        return {"outcome": "not checked", "detail": str(reason)}
    except (RuntimeError, TypeError, UnicodeDecodeError) as error:  # the bindings raise these for invalid return values
        return {"outcome": "failed", "detail": f"{type(error).__name__}: {error}"}


def check_libraries(request: dict[str, Any], flavor: Flavor, events: EventWriter, verbose: bool) -> None:
    """Runs in the supervisor: runs every check on every creator in a worker and reports the outcomes as one result."""

    def relay(event: dict[str, Any]) -> None:
        if verbose:
            events.write(event)

    limit = request["time_limit"]
    with Trials(request, flavor, relay) as trials:
        ready = trials.start(limit or LOADING_LIMIT)
        creators = [creator for library in ready["plugin_libraries"] for creator in library["creators"]]
        for index, creator in enumerate(creators):
            events.progress(f"check {creator['name']}", index, len(creators), index / len(creators))
            creator["checks"] = checks_of(trials, creator, limit or QUIET_LIMITS["plugins"])
    events.result("plugins", tensorrt=ready["tensorrt"], plugin_libraries=ready["plugin_libraries"])


def checks_of(trials: Trials, creator: dict[str, Any], limit: float) -> list[dict[str, str]]:
    checks: list[dict[str, str]] = []
    has_plugin = True
    for check in CHECKS:
        if has_plugin:
            found = ask(trials, creator, check, limit)
        else:
            found = {"outcome": "not checked", "detail": "no plugin could be created for this check"}
        checks.append({"check": check, **found})
        has_plugin = has_plugin and (check != "creation" or found["outcome"] == "passed")
    return checks


def ask(trials: Trials, creator: dict[str, Any], check: str, limit: float) -> dict[str, str]:
    key = [creator["name"], creator["version"], creator["namespace"]]
    found = trials.ask({"creator": key, "check": check, "limit": limit})
    if found["outcome"] == "hung":
        return {"outcome": "failed", "detail": f"the call did not return within {limit:g} s"}
    if found["outcome"] == "crashed":
        how = f"by signal {found['signal']}" if found["signal"] else f"with exit code {found['return_code']}"
        said = f"; its last message: {found['last_messages'][-1]}" if found["last_messages"] else ""
        return {"outcome": "failed", "detail": f"the call ended the process {how}{said}"}
    return {"outcome": found["outcome"], "detail": found["detail"]}
