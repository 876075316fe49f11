#!/usr/bin/env python3
"""Writes the files that the guides show into the guides: each block after `<!-- file: PATH -->` becomes that file."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- file: (\S+) -->\n+```\w*\n).*?^```$", re.M | re.S)

for page in [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]:
    if page.exists():
        text = page.read_text()
        page.write_text(BLOCK.sub(lambda block: block[1] + (ROOT / block[2]).read_text() + "```", text))
