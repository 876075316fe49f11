# Writes classes that implement TensorRT's interfaces, so that a test can stand in for a TensorRT that cannot be linked.
"""stub_interfaces.py HEADER_FOLDER OUTPUT.hpp: for each class below one that overrides every pure virtual function.

A function that a test does not override ends the test program with its name. Read from the headers in use, because the
functions differ between versions of TensorRT.
"""

import pathlib
import re
import sys

CLASSES = {
    "NvInferImpl.h": ["apiv::VBuilder", "apiv::VNetworkDefinition", "apiv::VLayer"],
    "NvInferRuntimeCommon.h": ["IPluginRegistry"],
}
FUNCTION = re.compile(r"virtual\s+(?P<head>[^;{}]*?\)\s*(?:const\s*)?(?:noexcept)?)\s*=\s*0;", re.S)


def stub(qualified: str, text: str) -> str:
    name = qualified.split("::")[-1]
    start = re.search(rf"^class {name}\b[^;]*?\n{{", text, re.M).start()
    body = re.sub(r"//[^\n]*", "", text[start : text.index("\n};", start)])
    lines = []
    for found in FUNCTION.finditer(body):
        head = " ".join(found["head"].split())
        function = re.search(r"(\w+)\s*\(", head)[1]
        lines.append(f'  {head} override {{ graft::unexpected_call("{name}::{function}"); }}')
    return f"class Stub{name} : public {qualified} {{\n public:\n" + "\n".join(lines) + "\n};\n"


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:])
    stubs = "\n".join(stub(name, (source / header).read_text()) for header, names in CLASSES.items() for name in names)
    target.write_text(
        "// Generated from TensorRT's headers by stub_interfaces.py.\n#pragma once\n#pragma GCC system_header\n\n#include <NvInfer.h>\n\n"
        "#include <cstdio>\n#include <cstdlib>\n\nnamespace graft {\n\n"
        "[[noreturn]] inline void unexpected_call(const char* function) {\n"
        '  std::fprintf(stderr, "the test calls %s, for which it has no stand-in\\n", function);\n  std::abort();\n}\n\n'
        "}  // namespace graft\n\n"
        f"namespace nvinfer1 {{\n\n{stubs}\n}}  // namespace nvinfer1\n"
    )


if __name__ == "__main__":
    main()
