#!/usr/bin/env python3
# Writes docs/plugins.md, the names, versions and fields of Graft's plugins, from `graft plugins --json`.
"""--check writes nothing, and exits with 1 if the page is out of date. Engines and ONNX files contain these names, so a
change of the page must follow the promise in docs/versions.md."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "plugins.md"
LIBRARIES = ("libgraft_plugins.so", "libgraft_stand_ins.so", "libgraft_onnx.so")
HEAD = """<!-- Written by tools/plugin_interface.py (`make docs`) from the plugin libraries; do not edit. -->
# The plugins and their fields

TensorRT finds a plugin by its name, its version and its namespace. An engine contains these three and the fields of
each plugin, and an ONNX file contains them as the attributes of a node. [Versions](versions.md) says when they may
change. The [pages of the operators](ops/README.md) describe the fields.
"""


def page(graft: str, folder: pathlib.Path) -> str:
    paths = [folder / name for name in LIBRARIES]
    done = subprocess.run([graft, "plugins", *paths, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: graft plugins: {done.stderr or done.stdout}")
    parts = [HEAD]
    for name, library in zip(LIBRARIES, json.loads(done.stdout)["plugin_libraries"], strict=True):
        namespaces = {creator["namespace"] for creator in library["creators"]}
        (namespace,) = namespaces
        place = f"the namespace `{namespace}`" if namespace else "the empty namespace"
        parts.append(f"\n## {name}\n\nThe plugins are in {place}.\n\n| plugin | version | fields |\n|---|---|---|\n")
        for creator in library["creators"]:
            fields = ", ".join(f"`{field['name']}` {field['type']}" for field in creator["fields"])
            parts.append(f"| {creator['name']} | {creator['version']} | {fields or 'none'} |\n")
    return "".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--graft", default=os.environ.get("GRAFT_BIN", str(ROOT / "build" / "bin" / "graft")))
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.graft).parents[1] / "lib"
    if not (folder / LIBRARIES[0]).is_file():
        print("plugins: a build without CUDA has no plugin library; docs/plugins.md was not compared")
        return 0
    text = page(arguments.graft, folder)
    if PAGE.is_file() and PAGE.read_text() == text:
        return 0
    if arguments.check:
        print(
            f"error: {PAGE.relative_to(ROOT)} is out of date: see docs/versions.md, then `make docs`", file=sys.stderr
        )
        return 1
    PAGE.write_text(text)
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
