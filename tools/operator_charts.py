# The charts of the operators' pages: SVG files that are readable on a light and on a dark page.
from xml.sax.saxutils import escape

WIDTH = 440
LABEL = 92  # left of the bars
FIGURE = 96  # right of them
BAR = 12

# The background is part of the picture, so that it is readable where the page's theme differs from the system's.
STYLE = """<style>
.back { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328; font: 11px sans-serif } .title { font-weight: bold }
.a { fill: #1a7f37 } .b { fill: #8c959f } .c { fill: #bf8700 }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 }
.a { fill: #3fb950 } .b { fill: #6e7681 } .c { fill: #d29922 } }
</style>"""


def bar_chart(title, groups, legend):
    """Returns a bar chart as SVG. `groups` is a list of (label, [(class, length from 0 to 1, figure)]); `legend` is
    a list of (class, text)."""
    parts = []
    y = 44
    for label, bars in groups:
        parts.append(f'<text x="10" y="{y + 10}">{escape(label)}</text>')
        for kind, length, figure in bars:
            room = WIDTH - LABEL - FIGURE
            drawn = max(0.0, min(1.0, length)) * room
            parts.append(f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{drawn:.1f}" height="{BAR - 2}"/>')
            parts.append(f'<text x="{LABEL + drawn + 5:.1f}" y="{y + 9}">{escape(figure)}</text>')
            y += BAR
        y += 6
    x = 10
    for kind, text in legend:
        parts.append(f'<rect class="{kind}" x="{x}" y="27" width="9" height="9"/>')
        parts.append(f'<text x="{x + 13}" y="35">{escape(text)}</text>')
        x += 13 + round(6.2 * len(text)) + 12
    height = y + 4
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img">\n<title>{escape(title)}</title>\n{STYLE}\n'
        f'<rect class="back" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>\n'
        f'<text class="title" x="10" y="18">{escape(title)}</text>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"
