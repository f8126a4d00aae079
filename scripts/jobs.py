# SPDX-License-Identifier: Apache-2.0
"""Runs many independent commands, some at a time, and counts each as one test."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from results import Results

TREE = Path(__file__).resolve().parent.parent


def give_back(path):
    """What root makes in somebody else's tree belongs to the owner of the tree: see lib.sh."""
    subprocess.run(["bash", "-c", '. scripts/lib.sh && give_back "$0"', path], cwd=TREE, check=False)


class Progress:
    """One line that is overwritten, on a terminal; nothing anywhere else."""

    def __init__(self, title, total):
        self.title, self.total, self.done = title, total, 0
        self.live = sys.stdout.isatty()
        self.show()

    def show(self):
        if self.live:
            print(f"\r\033[K{self.title} {self.done}/{self.total}", end="", flush=True)

    def step(self):
        self.done += 1
        self.show()

    def clear(self):
        if self.live:
            print("\r\033[K", end="", flush=True)


def run(title, commands, seconds, env=None, shown=slice(0, 40)):
    """Runs {name: argv} from the top of the tree; prints a summary, and the `shown` lines of failed ones."""
    results, started = Results(), time.monotonic()
    progress = Progress(title, len(commands))

    def one(argv):
        try:
            done = subprocess.run(argv, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=seconds, check=False, env=env)
        except subprocess.TimeoutExpired as late:
            return f"not finished after {seconds} s", late.stdout or b""
        except OSError as error:
            return str(error), b""
        return f"status {done.returncode}" if done.returncode else None, done.stdout

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        waiting = {pool.submit(one, argv): name for name, argv in commands.items()}
        for future in as_completed(waiting):
            problem, output = future.result()
            progress.step()
            if problem is None:
                results.passed += 1
                continue
            progress.clear()
            print("\n".join(output.decode(errors="replace").splitlines()[shown]))
            results.fail(f"{title} {waiting[future]}", problem)
    progress.clear()
    if not commands:
        results.fail(title, "found nothing to work on")
    print(f"{title}: {results} ({time.monotonic() - started:.0f} s)", flush=True)
    return results
