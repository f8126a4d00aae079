# SPDX-License-Identifier: Apache-2.0
"""Puts the figures of a benchmark run into a document in Markdown, between two markers."""

import re

MARKERS = re.compile(r"(<!-- figures: begin[^>]*-->\n).*?(<!-- figures: end -->)", re.S)
HEADS = {"ms": "| | median ms | p10 | p90 | best | x F0 | x F1 |\n|---|---|---|---|---|---|---|",
         "per second": "| | median per second | p10 | p90 | best |\n|---|---|---|---|---|",
         "MB per second": "| | median MB per second | p10 | p90 | best |\n|---|---|---|---|---|",
         "ms a request": "| | median ms a request | p10 | p90 | best |\n|---|---|---|---|---|",
         "ms for all": "| | median ms for all | p10 | p90 | best |\n|---|---|---|---|---|",
         "kB": "| | median kB | p10 | p90 | best |\n|---|---|---|---|---|"}


def figure(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def line(row):
    label = f"{row['group']}: {row['text']}" if row["group"] in ("library", "journal", "command line", "peer", "container",
                                                                 "mcp") else row["text"]
    if "median" not in row:
        return f"| {label} | {row['note'].replace('|', ' ')} |"
    cells = [figure(row[key]) for key in ("median", "p10", "p90", "best")]
    if row["unit"] == "ms":
        cells += [f"{row[floor]:.2f}" if floor in row else "" for floor in ("to_f0", "to_f1")]
    return f"| {label} | " + " | ".join(cells) + " |"


def measured(entry):
    """The value, the ratio or the difference that a target is about: of medians, and of the best values."""
    kind = next(kind for kind in ("value", "difference", "ratio") if kind + "_of_best" in entry)
    return entry[kind], entry[kind + "_of_best"]


def targets(report):
    lines = ["| target | asked | of the medians | of the best values | |", "|---|---|---|---|---|"]
    for entry in report["targets"]:
        figures = " | ".join(figure(value) for value in measured(entry)) if "met" in entry else "not measured |"
        outcome = "" if "met" not in entry else "met" if entry["met"] else "**missed**"
        lines.append(f"| {entry['text']} | {entry['word']} {entry['bound']} | {figures} | {outcome} |")
    return "\n".join(lines)


def section(report):
    host = report["host"]
    parts = [f"{report['date']}, {report['rounds']} rounds, Linux {host['kernel']}, {host['processors']} processors, "
             f"{'root' if host['root'] else 'ordinary user'}, load before the run {host['load_before']:.1f}.\n"
             f"Layers of a jail: `{report['layers']}`."]
    for unit, head in HEADS.items():
        rows = [line(row) for row in report["subjects"] if row["unit"] == unit]
        if rows:
            parts.append("\n".join([head, *rows]))
    return "\n\n".join([*parts, targets(report)])


def update(path, report):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not MARKERS.search(text):
        raise SystemExit(f"{path}: there is no place for figures in it")
    with open(path, "w", encoding="utf-8") as file:
        file.write(MARKERS.sub(lambda found: f"{found[1]}\n{section(report)}\n\n{found[2]}", text))
