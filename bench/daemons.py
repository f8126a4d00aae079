# SPDX-License-Identifier: Apache-2.0
"""Starts what the benchmark of container engines needs and the host does not run: a Docker daemon and Podman's
service, by hand, as root, with stores of their own below one directory; and ends them. Both sides of a comparison, the
engine's command line and toolcage, use the same daemon and the same store."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NEEDED_BY = {"docker": {"docker", "oci_docker", "peer", "container"},
             "podman": {"podman", "oci_podman", "peer", "container"}}
SECONDS_TO_START = 30


def answers(path):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        return True
    return False


def end(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def unmount(directory):
    for line in reversed(Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()):
        if line.split()[4].startswith(f"{directory}/"):
            subprocess.run(["umount", "-l", line.split()[4]], check=False)


def serve(stack, words, path, log):
    """Starts one daemon; False if it does not answer in time: its rows then say why they are empty."""
    with open(log, "wb") as file:
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    stack.callback(end, process)
    limit = time.monotonic() + SECONDS_TO_START
    while not answers(path):
        if process.poll() is not None or time.monotonic() > limit:
            print(f"run.py: {words[0]} does not start: {Path(log).read_text(errors='replace')[-300:]}", file=sys.stderr)
            return False
        time.sleep(0.05)
    return True


def docker(stack, base):
    directory = base / "docker"
    directory.mkdir()
    stack.callback(unmount, directory)
    (directory / "daemon.json").write_text("{}\n")
    words = ["dockerd", "--config-file", directory / "daemon.json", "--data-root", directory / "data", "--exec-root",
             directory / "exec", "--pidfile", directory / "pid", "-H", f"unix://{directory}/s",
             "--storage-driver=overlay2", "--iptables=false", "--ip6tables=false", "--bridge=none"]
    return {"DOCKER_HOST": f"unix://{directory}/s"} if serve(stack, words, directory / "s", base / "docker.log") else {}


def podman(stack, base):
    directory = base  # short: Podman allows 50 characters
    stack.callback(unmount, directory)
    words = ["podman", "--root", directory / "podman", "--runroot", directory / "podman-run", "--cgroup-manager", "cgroupfs",
             "--events-backend", "file"]
    if os.path.exists("/sys/fs/cgroup/unified/cgroup.procs"):
        words += ["--runtime", "runc"]  # crun refuses hybrid hosts
    words += ["system", "service", "--time", "0", f"unix://{directory}/p"]
    if not serve(stack, words, directory / "p", base / "podman.log"):
        return {}
    # The command line is told by options: CONTAINER_HOST must not make it a client of the service.
    return {"BENCH_PODMAN": str(directory), "BENCH_CONTAINER_HOST": f"unix://{directory}/p"}


@contextlib.contextmanager
def started(only):
    """The variables that name the daemons. Those that the caller names already, or that run, are left alone."""
    environment = {}
    with contextlib.ExitStack() as stack:
        if os.geteuid() == 0:
            base = Path(tempfile.mkdtemp(prefix="toolcage-bench-", dir="/var/tmp"))
            stack.callback(shutil.rmtree, base, ignore_errors=True)
            wanted = {name for name, words in NEEDED_BY.items() if not only or words & set(only)}
            if "docker" in wanted and shutil.which("dockerd") and "DOCKER_HOST" not in os.environ \
                    and not answers("/var/run/docker.sock"):
                environment |= docker(stack, base)
            if "podman" in wanted and shutil.which("podman"):
                environment |= podman(stack, base)
        yield environment
