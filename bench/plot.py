# SPDX-License-Identifier: Apache-2.0
"""Draws the times of a benchmark run as SVG: one line a subject, a dot for the median, a bar from p10 to p90, on a
logarithmic scale. It follows the reader's light or dark theme."""

import math
from html import escape

LEFT, WIDTH, TOP, STEP, BOTTOM = 270, 900, 62, 24, 54
RIGHT = WIDTH - 80
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 16px; font-weight: 600 }
  .small { font-size: 11px; fill: #57606a }
  .number { font-variant-numeric: tabular-nums }
  .grid { stroke: #d0d7de } .floor { stroke: #57606a; stroke-dasharray: 3 3 }
  .kernel { fill: #6e7781; stroke: #6e7781 } .ours { fill: #0969da; stroke: #0969da }
  .peer { fill: #bc4c00; stroke: #bc4c00 }
  .range { stroke-width: 6; stroke-linecap: round; opacity: .35; fill: none }
  .dot { stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d } .floor { stroke: #9198a1 }
    .kernel { fill: #9198a1; stroke: #9198a1 } .ours { fill: #4493f8; stroke: #4493f8 }
    .peer { fill: #f0883e; stroke: #f0883e }
  }
"""
KINDS = {"floor": "kernel", "library": "ours", "command line": "ours", "peer": "peer", "python": "ours",
         "caller": "ours", "gate": "ours", "journal": "ours", "container": "ours", "mcp": "ours"}


def kind(row):
    if row["id"] in ("python",) or row["id"].startswith("fork"):
        return "kernel"
    return KINDS[row["group"]]


def label(row):
    prefix = {"library": "tc_call, ", "journal": "journal, ", "container": "tc_call, ", "mcp": "MCP: "}.get(row["group"], "")
    return prefix + row["text"]


def scale(rows):
    """A function from milliseconds to x, and the ticks."""
    low = min(row["p10"] for row in rows)
    high = max(row["p90"] for row in rows)
    first, last = math.log10(low) - 0.05, math.log10(high) + 0.05
    ticks = [base * 10 ** power for power in range(-3, 5) for base in (1, 2, 5)]

    def place(value):
        return LEFT + (math.log10(value) - first) / (last - first) * (RIGHT - LEFT)

    return place, [tick for tick in ticks if first <= math.log10(tick) <= last]


def draw_row(row, y, place):
    name = kind(row)
    low, middle, high = (place(row[key]) for key in ("p10", "median", "p90"))
    return [f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{escape(label(row))}</text>',
            f'<path class="range {name}" d="M{low:.1f} {y}H{high:.1f}"/>',
            f'<circle class="dot {name}" cx="{middle:.1f}" cy="{y}" r="5"/>',
            f'<text class="number" x="{WIDTH - 12}" y="{y + 4}" text-anchor="end">{row["median"]:.3g} ms</text>']


def draw(report):
    rows = [row for row in report["subjects"] if row["unit"] == "ms" and "median" in row]
    if not rows:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n'
    place, ticks = scale(rows)
    height = TOP + STEP * len(rows) + BOTTOM
    end = TOP + STEP * len(rows)
    host = report["host"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
             f'aria-label="Time to run one command, by sandbox">',
             f"<style>{STYLE}</style>",
             '<text class="title" x="12" y="24">Time to run one command to its end</text>',
             f'<text class="small" x="12" y="42">milliseconds, logarithmic; dot: median, bar: p10 to p90 of '
             f'{report["rounds"]} interleaved rounds; Linux {escape(host["kernel"])}, '
             f'{host["processors"]} processors, {report["date"]}</text>']
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{place(tick):.1f} {TOP - 8}V{end}"/>')
        parts.append(f'<text class="small" x="{place(tick):.1f}" y="{end + 16}" text-anchor="middle">{tick:g}</text>')
    for row in rows:
        if row["group"] == "floor":
            parts.append(f'<path class="floor" d="M{place(row["median"]):.1f} {TOP - 8}V{end}"/>')
    for index, row in enumerate(rows):
        parts += draw_row(row, TOP + STEP * index + STEP // 2, place)
    for index, (name, text) in enumerate((("kernel", "without a cage"), ("ours", "toolcage"), ("peer", "others"))):
        x = LEFT + 150 * index
        parts.append(f'<circle class="dot {name}" cx="{x}" cy="{end + 36}" r="5"/>')
        parts.append(f'<text class="small" x="{x + 12}" y="{end + 40}">{text}</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"
