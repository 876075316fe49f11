# Collects the C++ examples of the operators' pages in one header, so that a test compiles and calls them.
"""page_examples.py PAGES_FOLDER OUTPUT.hpp"""

import pathlib
import re
import sys

CODE = re.compile(r"^```cpp\n(.*?)\n```$", re.S | re.M)
FUNCTION = re.compile(r"ITensor\* (\w+)\((.*?)\)", re.S)

blocks = [block for page in sorted(pathlib.Path(sys.argv[1]).glob("*.md")) for block in CODE.findall(page.read_text())]
includes = sorted({line for block in blocks for line in block.splitlines() if line.startswith("#include")})
bodies = ["\n".join(line for line in block.splitlines() if not line.startswith("#include")) for block in blocks]

text = "// Written by page_examples.py from docs/ops.\n#pragma once\n\n" + "\n".join(includes) + "\n\nnamespace {\n"
text += "\n".join(bodies) + "\n\n/// Calls every example with `tensor` for each input.\n"
text += "void add_page_examples(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor* tensor) {\n"
for body in bodies:
    name, parameters = FUNCTION.search(body).groups()
    text += f"  {name}(network{', tensor' * parameters.count('ITensor')});\n"
text += f"}}\nconstexpr std::size_t page_example_count = {len(bodies)};\n}}  // namespace\n"
pathlib.Path(sys.argv[2]).write_text(text)
