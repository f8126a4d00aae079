# SPDX-License-Identifier: Apache-2.0
"""What `toolcage doctor` is made of, looked at from outside: the host probes tell the truth as
root, as an ordinary user and where things are hidden from them, and leave nothing behind."""

import ctypes
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("TOOLCAGE_BUILD", Path(__file__).resolve().parents[2] / "build"))
PROBE = (BUILD / "tests" / "unit" / "host_probe").resolve()
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
BACKENDS = ["process", "jail", "oci/crun", "oci/runc", "oci/podman", "oci/docker", "gvisor", "wasm", "microvm"]
TIME_LIMIT = 30  # seconds, for a whole report; where nothing else runs it takes less than one

# The sanitizers' own runtime needs /proc, threads and terabytes of address space.
SANITIZED = PROBE.exists() and b"__asan_init" in PROBE.read_bytes()
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Report:
    def __init__(self, text):
        self.features, self.backends, self.clauses = {}, {}, {}
        for line in text.splitlines():
            kind, *fields = line.split("\t")
            if kind == "feature":
                name, state, detail, remedy = fields
                self.features[name] = (state, detail, remedy)
            elif kind == "backend":
                name, ready, missing = fields
                self.backends[name] = (ready == "ready", [m for m in missing.split(",") if m])
            elif kind == "clause":
                backend, clause, keeps, why, remedy = fields
                self.clauses[backend, clause] = (keeps, why, remedy)
            else:
                raise AssertionError(f"unexpected line: {line!r}")

    def state(self, name):
        return self.features[name][0]

    def expect_no(self, name, in_detail="", in_remedy=""):
        state, detail, remedy = self.features[name]
        assert state == "no", (name, state, detail)
        assert in_detail in detail and in_remedy in remedy and remedy, (name, detail, remedy)


def run(*features, prefix=(), env=None, timeout=20, **options):
    """The report of the features, or of everything; `prefix` is a command that runs the probe."""
    done = subprocess.run([*prefix, str(PROBE), *features], capture_output=True, text=True,
                          timeout=timeout, env=env, **options)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stderr == ""
    # How slow an emulated guest is differs from run to run.
    return Report(re.sub(r"more than 10+ times slower", "more than N times slower", done.stdout))


def in_private_mounts(script, prefix=()):
    """A prefix: runs `script` in a mount namespace of its own, then the command."""
    return [*prefix, "unshare", "--mount", "--propagation", "private", "sh", "-ec",
            script + '; exec "$@"', "sh"]


# ---- nothing is left behind ---------------------------------------------------------------------


def probe_processes():
    """Processes of the probe or started by it; other test runs of the tree are not ours."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.readlink(entry / "exe") == str(PROBE):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def cgroups():
    while True:
        try:
            return {str(p) for p in Path("/sys/fs/cgroup").rglob("toolcage-probe-*")}
        except FileNotFoundError:
            pass  # a group that went while we looked


def traces():
    """What other tests of the tree have at the same time is theirs: containers, gates and servers."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "/toolcage-lab-" not in line]
    places = ["/tmp", "/var/tmp", "/dev/shm", "/run"]
    files = {f"{place}/{name}" for place in places if os.path.isdir(place)
             for name in os.listdir(place) if not name.startswith(("toolcage-lab-", "toolcage-gate-", "toolcage-mcp-"))}
    return {"processes": probe_processes(), "cgroups": cgroups(), "mounts": set(mounts),
            "files": {f for f in files if "toolcage" in f or "crun" in f or "runsc" in f}}


@pytest.fixture(autouse=True)
def nothing_left():
    before = traces()
    yield
    deadline = time.monotonic() + 20
    while True:
        after = traces()
        new = {kind: after[kind] - before[kind] for kind in after}
        if not any(new.values()):
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"left behind: {new}")
        time.sleep(0.05)


# ---- the whole report ---------------------------------------------------------------------------


def check_whole(report):
    assert list(report.backends) == BACKENDS
    clauses = {clause for _, clause in report.clauses}
    assert len(report.clauses) == len(BACKENDS) * len(clauses) and "filesystem" in clauses
    for name, (state, detail, remedy) in report.features.items():
        assert state in ("yes", "no", "unknown") and detail, name
        assert (remedy == "") if state == "yes" else True, name
        assert remedy if state == "no" else True, name
    for name, (ready, missing) in report.backends.items():
        assert ready == (not missing), name
        assert all(report.state(m) != "yes" for m in missing), name
    for (backend, clause), (keeps, why, remedy) in report.clauses.items():
        assert keeps == "yes" or keeps == "no" or keeps.startswith("if:")
        if keeps != "yes":
            assert why and remedy, (backend, clause)
        if not report.backends[backend][0]:
            assert keeps == "no", (backend, clause)


@as_root
def test_report_as_root_is_whole_and_quick():
    begin = time.monotonic()
    report = run()
    assert time.monotonic() - begin < TIME_LIMIT
    check_whole(report)
    assert report.state("kernel") == "yes"


def test_report_as_ordinary_user_is_whole_and_quick():
    begin = time.monotonic()
    report = run(prefix=NOBODY if os.geteuid() == 0 else ())
    assert time.monotonic() - begin < TIME_LIMIT
    check_whole(report)
    report.expect_no("privileged")
    report.expect_no("idmapped_mounts", in_remedy="root")
    # Without a range in /etc/subuid, or without a control group: said so, with the command.
    if os.geteuid() == 0:
        report.expect_no("subid_ranges", in_remedy="usermod --add-subuids")
    # No backend uses it: nobody should hand over a hierarchy for it.
    assert not [remedy for _, _, remedy in report.features.values() if "freezer" in remedy]


def test_two_reports_are_equal():
    assert run().features == run().features


@pytest.mark.parametrize("backend", BACKENDS)
def test_for_one_backend_only_its_features_are_asked(tmp_path, backend):
    """Linting a policy for the jail must not start whatever is called podman in PATH."""
    needs = {"oci/podman": {"podman"}, "oci/crun": {"crun"}, "oci/runc": {"runc"}, "gvisor": {"runsc"},
             "microvm": {"qemu", "firecracker"}}
    for name in ["qemu-system-x86_64", "qemu-system-aarch64", *PROGRAMS]:
        program(tmp_path, name, "echo version 1\n")
    report = run("--for", backend, env=with_path(tmp_path))
    asked = {name for name, (_, detail, _) in report.features.items() if detail != "not asked"}
    assert asked & {*PROGRAMS} == needs.get(backend, set())
    for name in report.features.keys() - asked:
        assert report.state(name) == "unknown" and report.features[name][2]
    whole = run(env=with_path(tmp_path))
    assert all(report.features[name] == whole.features[name] for name in asked)


# ---- hidden: user namespaces --------------------------------------------------------------------


def test_no_user_namespaces_allowed_here():
    """The limit of a nested user namespace holds for that namespace alone."""
    prefix = ["unshare", "--user", "--map-root-user", "sh", "-ec",
              'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh"]
    report = run(prefix=prefix)
    check_whole(report)
    report.expect_no("user_namespaces", "max_user_namespaces is 0",
                     "sysctl -w user.max_user_namespaces=")
    report.expect_no("userns_process_limit")


def test_no_net_namespaces_allowed_here():
    prefix = ["unshare", "--user", "--map-root-user", "sh", "-ec",
              'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"', "sh"]
    report = run(prefix=prefix)
    assert report.state("user_namespaces") == "yes"
    report.expect_no("net_namespace", "max_net_namespaces", "sysctl -w user.max_net_namespaces=")
    report.expect_no("gate_local_route")
    keeps, why, _ = report.clauses["jail", "network_none"]
    assert keeps == "no" and "net_namespace" in why


# ---- hidden: by a filter, as in a container -----------------------------------------------------

SYSCALLS = {
    "x86_64": {"unshare": 272, "clone3": 435, "landlock_create_ruleset": 444, "pidfd_open": 434,
               "openat2": 437, "close_range": 436, "mount_setattr": 442, "fsopen": 430},
    "aarch64": {"unshare": 97, "clone3": 435, "landlock_create_ruleset": 444, "pidfd_open": 434,
                "openat2": 437, "close_range": 436, "mount_setattr": 442, "fsopen": 430},
}.get(platform.machine(), {})


def denying(call, errnum):
    """For preexec_fn: a seccomp filter that lets everything through but one call."""
    number = SYSCALLS[call]
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errnum),
            (0x06, 0, 0, 0x7FFF0000)]
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in code)

    def install():
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = ctypes.create_string_buffer(program)
        head = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, head, 0, 0):  # no_new_privs; filter
            raise OSError(ctypes.get_errno(), "seccomp")

    return install


def unprivileged(install):
    """The same as nobody: root needs no user namespace."""

    def both():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        install()

    return both


needs_numbers = pytest.mark.skipif(not SYSCALLS, reason="no system call numbers for this machine")


@needs_numbers
def test_filter_that_denies_unshare():
    report = run(preexec_fn=unprivileged(denying("unshare", 1)))
    check_whole(report)
    report.expect_no("user_namespaces", "Operation not permitted", "seccomp profile")
    report.expect_no("mount_namespace", "no capabilities", "user_namespaces")
    ready, missing = report.backends["jail"]
    assert not ready and "user_namespaces" in missing
    assert report.backends["process"][0]  # what it is for


@needs_numbers
@pytest.mark.parametrize("call, feature, errnum", [
    ("clone3", "clone3", 38), ("pidfd_open", "pidfd", 1), ("openat2", "openat2", 38),
    ("close_range", "close_range", 38), ("landlock_create_ruleset", "landlock", 38),
    ("landlock_create_ruleset", "landlock", 95), ("mount_setattr", "mount_setattr", 38),
    ("fsopen", "mount_api", 1)])
def test_filter_that_denies_one_call(call, feature, errnum):
    report = run(preexec_fn=unprivileged(denying(call, errnum)))
    check_whole(report)
    report.expect_no(feature)


@needs_numbers
def test_landlock_that_is_not_enabled_has_its_own_remedy():
    report = run("landlock", preexec_fn=unprivileged(denying("landlock_create_ruleset", 95)))
    report.expect_no("landlock", "not enabled", "lsm=landlock")


@needs_numbers
def test_unexpected_error_is_unknown():
    report = run("clone3", preexec_fn=unprivileged(denying("clone3", 74)))  # EBADMSG
    state, detail, _ = report.features["clone3"]
    assert state == "unknown" and "unexpected" in detail


# ---- hidden: files and mounts -------------------------------------------------------------------


@as_root
def test_kvm_that_is_something_else():
    if not os.path.exists("/dev/kvm"):
        pytest.skip("there is no /dev/kvm to hide")
    report = run("kvm", prefix=in_private_mounts("mount --bind /dev/null /dev/kvm"))
    report.expect_no("kvm", "is not KVM", "modprobe")


@as_root
def test_kvm_that_is_not_there():
    report = run("kvm", prefix=in_private_mounts("mount -t tmpfs none /dev"))
    report.expect_no("kvm", "no /dev/kvm", "modprobe kvm_intel")


def test_kvm_is_believed_only_with_a_guest_that_ran():
    state, detail, _ = run("kvm").features["kvm"]
    if state == "yes":
        assert "guest" in detail and "full speed" in detail


@as_root
def test_proc_of_a_container_is_masked():
    prefix = in_private_mounts("mount --bind /dev/null /proc/uptime") + NOBODY
    report = run(prefix=prefix)
    report.expect_no("mount_proc", "Operation not permitted", "unmask=ALL")
    assert report.backends["jail"][0] == (not report.backends["jail"][1])


@as_root
def test_control_groups_that_are_read_only():
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [m.split()[4] for m in mounts if " - cgroup" in m]
    script = "; ".join(f"mount -o remount,ro,bind {p}" for p in points) or "true"
    report = run(prefix=in_private_mounts(script))
    for name in ("cgroup_memory", "cgroup_pids", "cgroup_cpu"):
        assert report.state(name) == "no", report.features[name]
    assert report.clauses["jail", "memory"][0] != "yes"


@as_root
def test_no_control_groups_at_all():
    report = run(prefix=in_private_mounts("umount -l -R /sys/fs/cgroup"))
    report.expect_no("cgroup", "no control groups", "mount -t cgroup2")
    report.expect_no("cgroup_memory", in_remedy="see cgroup")


@as_root
@pytest.mark.skipif(SANITIZED, reason="the sanitizer needs /proc")
def test_without_proc():
    check_whole(run(prefix=in_private_mounts("umount -l -R /proc")))


# ---- programs -----------------------------------------------------------------------------------

PROGRAMS = ["podman", "docker", "crun", "runc", "runsc", "firecracker", "wasmtime", "qemu"]


def program(directory, name, script):
    path = directory / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    directory.chmod(0o755)
    return path


def is_found_elsewhere(name):
    """Container runtimes are looked for beside PATH, too."""
    return name in ("podman", "crun", "runc", "runsc") and any(
        os.access(f"{directory}/{name}", os.X_OK) for directory in ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin"))


def with_path(*entries, **more):
    return {"PATH": ":".join(map(str, entries)), **more}


@pytest.mark.parametrize("env", [{}, {"PATH": ""}, {"PATH": "/nonexistent"}])
def test_empty_path_finds_no_program(env):
    report = run(*PROGRAMS, env=env)
    for name in PROGRAMS:
        if is_found_elsewhere(name):
            continue
        report.expect_no(name, "not in PATH" if report.features[name][1] else "")
        if name == "crun":
            assert re.search(r"apt install crun|PATH=\$PATH:", report.features[name][2])


@as_root
def test_runtime_beside_the_path_is_found_as_the_backend_finds_it():
    script = "mkdir -p /usr/local/sbin && mount -t tmpfs x /usr/local/sbin && " \
             "printf '#!/bin/sh\\necho runc version 7.8.9\\n' > /usr/local/sbin/crun && " \
             "chmod 755 /usr/local/sbin/crun; export PATH=/nonexistent"
    report = run("crun", prefix=in_private_mounts(script))
    assert report.state("crun") == "yes" and "7.8.9 (/usr/local/sbin/crun)" in report.features["crun"][1]


@pytest.mark.parametrize("said,state,word", [
    ("runsc version release-20240729.0", "yes", "20240729"),
    ("runsc version 0.0~20221219.0", "yes", "20221219"),
    ("runsc version release-20211026.0", "no", "older than 20221219"),
    ("runsc version VERSION_MISSING", "unknown", "no release"),
])
def test_runsc_must_be_a_release_that_is_new_enough(tmp_path, said, state, word):
    program(tmp_path, "runsc", f"echo '{said}'\n")
    report = run("runsc", env=with_path(tmp_path))
    assert report.state("runsc") == state and word in report.features["runsc"][1]
    assert bool(report.features["runsc"][2]) == (state != "yes")


def test_remedies_name_no_address():
    """A link that somebody made up is worse than none."""
    for state, _, remedy in run(*PROGRAMS, "libwasmtime", env={}).features.values():
        assert "http" not in remedy


def test_program_in_the_working_directory_is_not_run(tmp_path):
    program(tmp_path, "podman", f"touch {tmp_path}/ran; echo podman version 6.6.6\n")
    for path in [".", "", ":", ".:/nonexistent", "./", f"../{tmp_path.name}"]:
        report = run("podman", env={"PATH": path}, cwd=tmp_path)
        report.expect_no("podman")
    assert not (tmp_path / "ran").exists()


def test_program_that_another_user_could_have_put_there_is_not_run(tmp_path):
    """Root with a PATH that leads through somebody else's directory, and its variants."""
    def planted(name):
        (tmp_path / name).mkdir()
        return program(tmp_path / name, "runc", f"touch {tmp_path}/ran; echo runc version 6.6.6\n").parent
    theirs, open_to_all, open_file, linked = (planted(name) for name in ("theirs", "open", "file", "linked"))
    (theirs / "runc").chmod(0o755)
    if os.geteuid() == 0:
        os.chown(theirs, 65534, 65534)
    else:
        theirs.chmod(0o777)
    open_to_all.chmod(0o777)
    (open_file / "runc").chmod(0o777)
    (linked / "runc").unlink()
    (linked / "runc").symlink_to(theirs / "runc")
    for directory in (theirs, open_to_all, open_file, linked):
        for state, detail, _ in run("runc", env={"PATH": str(directory)}).features.values():
            assert "6.6.6" not in detail, (directory, state, detail)
    assert not (tmp_path / "ran").exists()
    fine = planted("fine")
    state, detail, _ = run("runc", env={"PATH": str(fine)}).features["runc"]
    assert state == "yes" and "6.6.6" in detail


def test_version_is_shown_and_made_harmless(tmp_path):
    program(tmp_path, "podman", "echo warning >&2; printf 'podman \\033[31mversion\\t9.9\\n'\n")
    state, detail, _ = run("podman", env=with_path(tmp_path)).features["podman"]
    assert state == "yes" and "podman ?[31mversion?9.9" in detail and "warning" not in detail


def test_program_sees_a_clean_environment(tmp_path):
    program(tmp_path, "podman", 'echo "secret=$SECRET home=$HOME"\n')
    _, detail, _ = run("podman", env=with_path(tmp_path, SECRET="swordfish")).features["podman"]
    assert "secret= home=/dev/null" in detail


def test_program_that_fails_is_unknown(tmp_path):
    program(tmp_path, "podman", "echo half a version; exit 3\n")
    program(tmp_path, "runc", "kill -SEGV $$\n")
    report = run("podman", "runc", env=with_path(tmp_path))
    assert report.features["podman"][:2] == \
        ("unknown", f"{tmp_path}/podman --version: exit status 3, with output"[:192])
    assert report.state("runc") == "unknown" and "signal 11" in report.features["runc"][1]


def test_program_that_hangs_is_killed_with_its_children(tmp_path):
    program(tmp_path, "podman", f"sleep 98765 & sleep 98765 & echo $! > {tmp_path}/x; wait\n")
    begin = time.monotonic()
    state, detail, _ = run("podman", env=with_path(tmp_path, "/usr/bin", "/bin")).features["podman"]
    assert time.monotonic() - begin < TIME_LIMIT
    assert state == "unknown" and "no answer within 3000 ms" in detail
    deadline = time.monotonic() + 20
    while subprocess.run(["pgrep", "-f", "^sleep 98765$"], capture_output=True).returncode == 0:
        assert time.monotonic() < deadline, "children of the program live on"
        time.sleep(0.05)


def processes_with(argument):
    """Processes that have this word among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and argument.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def shared_path():
    """Like tmp_path, but every user can reach it; with a copy of the probe."""
    with tempfile.TemporaryDirectory(prefix="host-probe-") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(PROBE, folder)
        yield Path(folder)


# Where there is no pid namespace for the program, its guard kills what it left one by one.
NO_PID_NAMESPACES = ["unshare", "--user", "--map-root-user", "sh", "-ec",
                     'echo 0 > /proc/sys/user/max_pid_namespaces; exec "$@"', "sh"]
SURROUNDINGS = [pytest.param([], id="plain"), pytest.param(NO_PID_NAMESPACES, id="no pid namespaces"),
                pytest.param(NOBODY, id="nobody", marks=as_root)]
LEAVERS = {
    "session": "setsid sleep {n} >/dev/null 2>&1 &",
    "session with our output": "setsid sleep {n} &",
    "two sessions": "(setsid sh -c 'setsid sleep {n} & setsid sleep {n} &') &",
    "many": "for i in 1 2 3 4 5 6 7 8; do setsid sleep {n} & done",
}


@pytest.mark.parametrize("prefix", SURROUNDINGS)
@pytest.mark.parametrize("script", LEAVERS.values(), ids=LEAVERS.keys())
def test_program_leaves_no_process_in_another_session(shared_path, prefix, script):
    seconds = f"97.{os.getpid()}"
    program(shared_path, "runc", script.format(n=seconds) + "\nsleep 0.05; echo runc version 1\n")
    for _ in range(5):  # where the machine is busy, once may take long
        begin = time.monotonic()
        done = subprocess.run([*prefix, shared_path / PROBE.name, "runc"], capture_output=True, text=True, check=True,
                              timeout=60, env=with_path(shared_path, "/usr/sbin", "/usr/bin", "/sbin", "/bin"))
        took = time.monotonic() - begin
        left = processes_with(seconds)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert left == []
        if took < 2:
            break
    assert Report(done.stdout).features["runc"][:2] == ("yes", f"runc version 1 ({shared_path}/runc)"[:192]), done.stdout
    assert took < 2  # not until the limit, although the pipe was kept open


@pytest.mark.parametrize("prefix", SURROUNDINGS[:2])
def test_probe_killed_with_its_program_leaves_no_process(tmp_path, prefix):
    seconds = f"96.{os.getpid()}"
    program(tmp_path, "runc", f"setsid sleep {seconds} & setsid sleep {seconds} >/dev/null 2>&1 & sleep {seconds}\n")
    process = subprocess.Popen([*prefix, str(PROBE), "runc"], stdout=subprocess.DEVNULL,
                               env=with_path(tmp_path, "/usr/bin", "/bin"))
    deadline = time.monotonic() + 20
    while len(processes_with(seconds)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(processes_with(seconds)) >= 3
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while (left := processes_with(seconds)) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.mark.parametrize("prefix", SURROUNDINGS[::2])
def test_program_sees_its_own_user(shared_path, prefix):
    """Also where it runs in a user namespace of its own."""
    program(shared_path, "runc", "id -u\n")
    done = subprocess.run([*prefix, shared_path / PROBE.name, "runc"], capture_output=True, text=True, check=True,
                          env=with_path(shared_path, "/usr/sbin", "/usr/bin", "/sbin", "/bin"))
    user = 65534 if prefix else os.geteuid()
    assert Report(done.stdout).features["runc"][1].startswith(f"{user} ("), done.stdout


def test_program_that_never_stops_talking(tmp_path):
    program(tmp_path, "podman", "while :; do echo yes; done\n")
    state, detail, _ = run("podman", env=with_path(tmp_path)).features["podman"]
    assert state == "unknown" and "no answer" in detail


def test_program_can_make_no_file(tmp_path):
    """As crun does, which makes its run directory when asked for its version."""
    if run("landlock").state("landlock") != "yes":
        pytest.skip("no Landlock to hold it back with")
    program(tmp_path, "podman", f"mkdir {tmp_path}/made; : > {tmp_path}/written; echo done\n")
    program(tmp_path, "runc", f"mkdir -p $XDG_RUNTIME_DIR/runc $HOME/x; echo done\n")
    report = run("podman", "runc", env=with_path(tmp_path, "/usr/bin", "/bin"))
    assert sorted(os.listdir(tmp_path)) == ["podman", "runc"]
    assert report.state("runc") == "yes"


def test_library_path_that_depends_on_the_working_directory(tmp_path):
    for value in [".", "", "/usr/lib:", "/usr/lib::/lib", "lib"]:
        env = {**os.environ, "LD_LIBRARY_PATH": value}
        state, detail, remedy = run("libwasmtime", env=env, cwd=tmp_path).features["libwasmtime"]
        if value:
            assert state == "unknown" and "LD_LIBRARY_PATH" in detail and remedy, value


SYMBOLS = ["wasmtime_store_new", "wasmtime_module_new", "wasmtime_linker_define_wasi",
           "wasmtime_store_limiter", "wasmtime_linker_new", "wasmtime_context_set_wasi"]


def library(directory, symbols, engine="&here"):
    source = directory / "library.c"
    source.write_text("static int here; void *wasm_engine_new(void) { return %s; }\n"
                      "void wasm_engine_delete(void *e) { (void)e; (void)here; }\n" % engine +
                      "".join(f"void {symbol}(void) {{}}\n" for symbol in symbols))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", directory / "libwasmtime.so", source],
                   check=True)
    return {**os.environ, "LD_LIBRARY_PATH": str(directory)}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
@pytest.mark.parametrize("symbols, engine, state, word", [
    (SYMBOLS, "&here", "yes", "libwasmtime.so"),
    (SYMBOLS[1:], "&here", "no", "lacks wasmtime_store_new"),
    (SYMBOLS, "0", "no", "no engine starts"),
    (SYMBOLS, "*(void **)16", "unknown", "killed by SIGSEGV")])
def test_library_is_loaded_and_tried(tmp_path, symbols, engine, state, word):
    if SANITIZED and state == "unknown":
        pytest.skip("the sanitizer catches the crash")
    report = run("libwasmtime", env=library(tmp_path, symbols, engine))
    assert report.state("libwasmtime") == state
    assert word in report.features["libwasmtime"][1]


# ---- Docker's daemon ----------------------------------------------------------------------------


class Daemon:
    """Answers each request on a unix socket with what `answers` has for its path."""

    def __init__(self, path, answers, delay=0.0):
        self.answers, self.delay, self.asked = answers, delay, []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                what = connection.recv(4096).decode().split(" ")[1]
                self.asked.append(what)
                time.sleep(self.delay)
                try:
                    connection.sendall(self.answers.get(what, b"HTTP/1.0 404 Not Found\r\n\r\n"))
                except OSError:
                    pass

    def close(self):
        self.socket.close()


PING = b"HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\n\r\nOK"
INFO = b'HTTP/1.0 200 OK\r\n\r\n{"ID":"x","MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true}'


def ask_daemon(tmp_path, answers, **options):
    path = tmp_path / "d.sock"
    daemon = Daemon(path, answers, **options)
    try:
        env = {**os.environ, "DOCKER_HOST": f"unix://{path}"}
        return run(env=env), daemon
    finally:
        daemon.close()


def test_docker_daemon_that_answers(tmp_path):
    report, daemon = ask_daemon(tmp_path, {"/_ping": PING, "/info": INFO})
    assert report.state("docker_daemon") == "yes" and "1.41" in report.features["docker_daemon"][1]
    assert report.state("docker_limits") == "yes"
    assert report.backends["oci/docker"][0]
    assert report.clauses["oci/docker", "memory"][0] == "yes"
    assert daemon.asked == ["/_ping", "/info"]


def test_docker_daemon_that_cannot_limit(tmp_path):
    spoofed = INFO.replace(b'"PidsLimit":true', b'"PidsLimit":false').replace(
        b'"x"', b'"\\"PidsLimit\\":true"')
    report, _ = ask_daemon(tmp_path, {"/_ping": PING, "/info": spoofed})
    report.expect_no("docker_limits", "processes no")


def test_docker_daemon_that_hangs(tmp_path):
    begin = time.monotonic()
    report, _ = ask_daemon(tmp_path, {"/_ping": PING}, delay=60)
    assert time.monotonic() - begin < TIME_LIMIT
    report.expect_no("docker_daemon", "timed out", "systemctl start docker")


def test_docker_daemon_that_is_something_else(tmp_path):
    report, _ = ask_daemon(tmp_path, {"/_ping": b"220 mail.example.org ESMTP\r\n"})
    assert report.state("docker_daemon") == "unknown"


def test_docker_host_on_the_network_is_not_tried():
    report = run("docker_daemon", env={**os.environ, "DOCKER_HOST": "tcp://192.0.2.1:2375"})
    state, detail, remedy = report.features["docker_daemon"]
    assert state == "unknown" and "not a local socket" in detail and remedy


def test_docker_socket_without_a_daemon(tmp_path):
    path = tmp_path / "d.sock"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
    report = run("docker_daemon", env={**os.environ, "DOCKER_HOST": f"unix://{path}"})
    report.expect_no("docker_daemon", "refused", "start docker")


# ---- tight limits, odd callers, sudden ends -----------------------------------------------------


@pytest.mark.parametrize("limit", ["--nofile=6", "--nofile=8", "--nofile=16", "--fsize=0",
                                   "--core=unlimited", "--stack=262144", "--data=16000000",
                                   "--memlock=0", "--nproc=1", "--nproc=4"])
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_under_a_limit_the_report_is_still_whole(limit, user):
    if user == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    if SANITIZED and limit.startswith(("--data", "--stack", "--nproc")):
        pytest.skip("the sanitizer cannot live with it")
    become = NOBODY if user == "nobody" and os.geteuid() == 0 else []
    check_whole(run(prefix=[*become, "prlimit", limit]))


@pytest.mark.parametrize("count", [*range(5, 21), 32])
def test_few_descriptors_change_no_answer_to_no_or_yes(count):
    """What could not be tried is unknown, not absent: with the reason and what to do about it."""
    many, few = run(), run(prefix=["prlimit", f"--nofile={count}"])
    for name, (state, detail, remedy) in few.features.items():
        assert state in ("unknown", many.state(name)), (name, many.features[name], detail)
        if state == "unknown" and many.state(name) != "unknown":
            assert remedy, (name, detail)
    if count >= 16:
        assert few.features == many.features


def test_low_soft_limit_does_not_matter():
    assert run(prefix=["prlimit", "--nofile=8:1024"]).features == run().features


def test_standard_descriptors_closed(tmp_path):
    output = tmp_path / "report"
    script = f'exec "$0" > {output} <&- 2>&-'
    assert subprocess.run(["sh", "-c", script, str(PROBE)]).returncode == 0
    check_whole(Report(output.read_text()))


def test_child_signal_ignored():
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    check_whole(run(preexec_fn=ignore))
    assert run("pidfd", preexec_fn=ignore).state("pidfd") == "yes"


@pytest.mark.parametrize("after_ms", [1, 3, 5, 10, 20, 40, 80])
def test_killed_at_any_moment_it_leaves_nothing(after_ms):
    """The fixture above looks, for some seconds, whether everything goes."""
    for _ in range(3):
        process = subprocess.Popen([str(PROBE)], stdout=subprocess.DEVNULL)
        time.sleep(after_ms / 1000)
        process.kill()
        process.wait()


def test_many_at_once():
    running = [subprocess.Popen([str(PROBE)], stdout=subprocess.PIPE, text=True) for _ in range(6)]
    for process in running:
        text, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        check_whole(Report(text))
