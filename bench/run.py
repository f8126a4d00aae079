#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Runs bench_native, shows its figures as a table, and keeps them as JSON and as a plot.

  bench/run.py PROGRAM [--rounds N] [--only NAME...] [--json FILE] [--svg FILE] [--document FILE]

PROGRAM is bench_native of a finished build, or the JSON of an earlier run, which is shown again. NAME is a subject or a
group: PROGRAM --list shows them. --document puts the figures into a Markdown file, between its markers.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys

import daemons
import document
import plot

# What DESIGN and docs/benchmarks.md promise: measure, reference, bound on their ratio, and the words.
TARGETS = [
    ("jail", "f1", 1.5, "at most", "jail, cold, through the library, against F1"),
    ("jail_cli", "bwrap_seccomp", 0.5, "at most", "jail, whole command line process, against bwrap with equal flags"),
    ("process", "f0", 1.5, "at most", "process, cold, through the library, against F0"),
    ("load_jail", "load_spawn", 0.6, "at least", "throughput of jails on all processors, against a spawn loop"),
    ("jail_4gb", "jail_1mb", 1.2, "at most", "jail, caller with 4 GB resident, against 1 MB"),
    ("recorded", "unrecorded", 0.2, "at most, in ms more,", "what a record in the journal adds to a call"),
    ("jail_gate", "jail", 1.3, "at most", "jail with a gate, against one without a network"),
    ("jail_gate", "jail", 0.5, "at most, in ms more,", "what a gate adds to the start of a jail"),
    ("stream_gate", "stream_direct", 0.4, "at least", "throughput through a gate, against a direct connection"),
    ("request_gate", "request_direct", 1.0, "at most, in ms more,", "what a gate adds to a small HTTP request"),
    ("oci_crun", "crun", 1.15, "at most", "oci with bare crun, through the library, against crun run"),
    ("oci_podman", "podman", 1.0, "at most", "oci through Podman's API, against podman run"),
    ("oci_docker", "docker", 1.0, "at most", "oci through Docker's API, against docker run"),
    ("gvisor", "runsc", 1.1, "at most", "gvisor, through the library, against runsc run"),
    ("oci_crun_warm", "oci_crun", 0.5, "at most", "oci, warm, against cold"),
    ("gvisor_warm", "gvisor", 0.5, "at most", "gvisor, warm, against cold"),
    ("mcp_process_stdio", "mcp_process", 0.3, "at most, in ms more,", "what MCP over stdio adds to a call, process"),
    ("mcp_jail_stdio", "mcp_jail", 0.3, "at most, in ms more,", "what MCP over stdio adds to a call, jail"),
    ("mcp_process_http", "mcp_process", 0.6, "at most, in ms more,", "what MCP over HTTP adds to a call, process"),
    ("mcp_jail_http", "mcp_jail", 0.6, "at most, in ms more,", "what MCP over HTTP adds to a call, jail"),
    ("mcp_echo_wrapped", "mcp_echo", 0.2, "at most, in ms more,", "what wrapping adds to a call of another's tool"),
    ("mcp_load_process", None, 500, "at least, a second,", "calls over MCP, sustained"),
    ("mcp_idle_stdio", None, 12288, "at most, in kB,", "memory of an idle MCP server, stdio"),
    ("mcp_idle_http", None, 12288, "at most, in kB,", "memory of an idle MCP server, HTTP"),
]
SHOWN_WIDTH = 92


def quantile(values, part):
    """Of sorted values, between the two nearest ones."""
    place = part * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def summary(samples, unit):
    values = sorted(samples)
    return {"samples": len(values), "median": quantile(values, 0.5), "p10": quantile(values, 0.1),
            "p90": quantile(values, 0.9), "best": values[-1 if unit.endswith("per second") else 0]}


def measure(command, environment=None):
    """Header, and subjects in order, each with its samples."""
    header, subjects = {}, {}
    load = os.getloadavg()[0]
    progress = sys.stderr.isatty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as driver:
        for line in driver.stdout:
            record = json.loads(line)
            if "subject" not in record:
                header = record | {"load": load}
            elif "text" in record:
                subjects[record["subject"]] = record | {"values": []}
            elif "error" in record:
                subjects[record["subject"]]["note"] = "failed in a round: " + record["error"]
            else:
                subjects[record["subject"]]["values"].append(float(record["value"]))
                if progress:
                    print(f"\rround {record['round'] + 1} of {header['rounds']} ", end="", file=sys.stderr)
    if progress:
        print("\r\x1b[K", end="", file=sys.stderr)
    if driver.returncode != 0:
        sys.exit(f"run.py: the benchmark ended with status {driver.returncode}")
    return header, subjects


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"^model name\s*: (.*)", file.read(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def collect(header, subjects):
    rows = []
    for identity, subject in subjects.items():
        row = {key: subject[key] for key in ("group", "text", "unit")} | {"id": identity}
        if subject.get("note"):
            row["note"] = subject["note"]
        elif subject["values"]:
            row |= summary(subject["values"], row["unit"])
        else:
            row["note"] = "too few rounds"
        rows.append(row)
    medians = {row["id"]: row["median"] for row in rows if "median" in row}
    for row in rows:
        if row["unit"] == "ms" and "median" in row:
            row |= {f"to_{floor}": row["median"] / medians[floor] for floor in ("f0", "f1") if floor in medians}
    return {
        "version": 1,
        "date": datetime.date.today().isoformat(),
        "host": {"kernel": re.match(r"[\d.]*", platform.release())[0], "machine": platform.machine(),
                 "processor": processor(),
                 "processors": header["threads"], "root": header["root"], "load_before": header["load"]},
        "layers": header["layers"],
        "rounds": header["rounds"],
        "subjects": rows,
        "targets": [target({row["id"]: row for row in rows if "median" in row}, *entry) for entry in TARGETS],
    }


def adds(word):
    """Is the bound one on a difference, and not on a ratio?"""
    return word.endswith("more,")


def target(rows, measured, reference, bound, word, text):
    result = {"measured": measured, "reference": reference, "bound": bound, "word": word, "text": text}
    if reference is None:
        if measured in rows:
            value, best = rows[measured]["median"], rows[measured]["best"]
            result |= {"value": value, "value_of_best": best,
                       "met": value >= bound if word.startswith("at least") else value <= bound}
    elif measured in rows and reference in rows:
        ours, theirs = rows[measured], rows[reference]
        share = ours["median"] / theirs["median"]
        difference = ours["median"] - theirs["median"]
        result |= {"ratio": share, "ratio_of_best": ours["best"] / theirs["best"], "difference": difference,
                   "met": share >= bound if word == "at least" else (difference if adds(word) else share) <= bound}
        if adds(word):
            result["difference_of_best"] = ours["best"] - theirs["best"]
    return result


def number(value):
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def ratio(row, floor):
    return f"{row[floor]:.2f}" if floor in row else ""


def show(report):
    host = report["host"]
    print(f"{report['rounds']} rounds; Linux {host['kernel']}, {host['processors']} processors, "
          f"{'root' if host['root'] else 'ordinary user'}")
    if host["load_before"] > host["processors"] / 2:
        print(f"the host was busy before this began (load {host['load_before']:.1f}): all figures are too high, and "
              "those of cages more than others, because they change processes more often")
    if report["layers"]:
        print(f"layers of a jail: {report['layers']}")
    group = None
    for row in report["subjects"]:
        if (row["group"], row["unit"]) != group:
            group = row["group"], row["unit"]
            heads = "".join(f"{head:>9}" for head in ("median", "p10", "p90", "best"))
            print(f"\n{', '.join(group):40}{heads}{'x F0':>8}{'x F1':>8}")
        if "median" not in row:
            print(f"  {row['text']:38}  {row['note'][:SHOWN_WIDTH - 42]}")
            continue
        cells = "".join(f"{number(row[key]):>9}" for key in ("median", "p10", "p90", "best"))
        print(f"  {row['text']:38}{cells}{ratio(row, 'to_f0'):>8}{ratio(row, 'to_f1'):>8}")
    print("\ntargets")
    for entry in report["targets"]:
        if "met" in entry:
            value, best = document.measured(entry)
            outcome = (f"{value:.2f} (of the best values {best:.2f})  "
                       f"{'met' if entry['met'] else 'MISSED'}")
        else:
            outcome = "not measured"
        print(f"  {entry['text']}: {entry['word']} {entry['bound']}: {outcome}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("--document", metavar="FILE")
    options = parser.parse_args()
    if options.program.endswith(".json"):
        with open(options.program, encoding="utf-8") as file:
            report = json.load(file)
    else:
        command = [options.program, "--rounds", str(options.rounds)]
        command += [word for name in options.only for word in ("--only", name)]
        with daemons.started(options.only) as environment:
            report = collect(*measure(command, os.environ | environment))
    show(report)
    for path, text in ((options.json, json.dumps(report, indent=2) + "\n"), (options.svg, plot.draw(report))):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            print(f"wrote {path}")
    if options.document:
        document.update(options.document, report)
        print(f"wrote {options.document}")


if __name__ == "__main__":
    main()
