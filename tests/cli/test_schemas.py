# Tests the published schemas of the commands' --json output. Every test that requests JSON validates it against them.
import json
import re

import fastjsonschema
import pytest
from conftest import SCHEMAS, check_schema

OTHERS = {
    "graft.canary.bundle",
    "graft.canary.report",
    "graft.cut",
    "graft.error",
    "graft.report",
    "graft.verify.layers",
}


def names():
    return {path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.schema.json")}


def test_every_command_has_a_schema_and_no_other_thing_has(graft):
    commands = re.findall(r"^  ([a-z]+)  ", graft("--help").out, re.MULTILINE)
    assert "convert" in commands
    assert names() == {f"graft.{command}" for command in commands} | OTHERS


@pytest.mark.parametrize("name", sorted(names()))
def test_a_schema_is_one_and_says_its_version(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    fastjsonschema.compile(schema)
    version = schema["properties"].get("version", {}).get("const", 1)
    assert re.search(rf", version {version}$", schema["title"])


def test_what_is_not_listed_or_missing_is_seen(graft):
    answer = graft("completions", "bash", "--json").json
    for wrong in ({**answer, "more": 1}, {"shell": "bash"}, {**answer, "shell": 3}):
        with pytest.raises(pytest.fail.Exception) as failure:
            check_schema(["completions"], json.dumps(wrong))
        assert "graft.completions.schema.json: data" in str(failure.value)
        assert "graft_write_schemas docs/schema" in str(failure.value)
