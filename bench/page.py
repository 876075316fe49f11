# page.py - writes parts of the pages of figures: tables, and the text between two marks.
from __future__ import annotations


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def replace(page: str, text: str, mark: str, content: str) -> str:
    """Returns the page's text with this content between `<!-- mark: begin -->` and `<!-- mark: end -->`."""
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no marks '{mark}'")
    return before + begin + content + end + after
