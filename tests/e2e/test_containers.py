# SPDX-License-Identifier: Apache-2.0
"""One meaning everywhere: the same calls in containers of every engine, with the same results as in a native cage.

container_lab.py has the engines. The image is hostile: its entrypoint, user, environment, volume, health check, setuid
program and device node must not matter, in any test.
"""

import contextlib
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from container_lab import EMULATED, ENGINES, Cages, adopting, cages_of, only_version_2
from gate_lab import check_schema, world  # noqa: F401  (a fixture)
from native import IS_ROOT, SLOW, TIME_SCALE, Caller
from soak import eventually

pytestmark = pytest.mark.container

# One of each kind where everything is slow; $TOOLCAGE_ENGINES names others.
CHOSEN = (os.environ.get("TOOLCAGE_ENGINES", "").replace(",", " ").split()
          or (["crun", "docker"] if SLOW else [engine.name for engine in ENGINES]))
# These differ from another one in who calls: what is no matter of that is shown with the other one.
TWINS = {"runc-user", "gvisor-user", "podman"}
BOUNDED_SECONDS = 60 * TIME_SCALE  # a call with a limit has ended long before


def watched(lab, name):
    """The engine's cages, and then a look at what is left of them."""
    made = cages_of(lab, name)
    before, null = made.traces(), os.stat("/dev/null")
    yield made
    left = eventually(lambda: made.traces() - before)
    assert not left, left
    # A runtime gives the standard streams of a container to its user: none of them may be the host's own device.
    after = os.stat("/dev/null")
    assert (after.st_uid, after.st_gid, after.st_mode) == (null.st_uid, null.st_gid, null.st_mode)


@pytest.fixture(scope="module", params=CHOSEN)
def cages(request, lab):
    yield from watched(lab, request.param)


# In gVisor on an emulated processor a process takes a third of a second to start.
@pytest.fixture(scope="module", params=[name for name in CHOSEN if not (EMULATED and name.startswith("gvisor"))])
def quick(request, lab):
    """Where a command may start many processes."""
    yield from watched(lab, request.param)


@pytest.fixture(scope="module", params=[name for name in CHOSEN if name not in TWINS])
def kind(request, lab):
    """One of each kind."""
    yield from watched(lab, request.param)


def python_bytes(cages, *argv, data=b"", **more):
    """Standard output of a command as bytes, and its status."""
    process = cages.start("exec", "--policy", cages.policy(**more), "--tool", "t", "--", *argv, stdin=subprocess.PIPE)
    stdout, stderr = process.communicate(data, timeout=60 * TIME_SCALE)
    return stdout, stderr, process.returncode


# ---- streams and statuses -----------------------------------------------------------------------


@pytest.mark.native
def test_streams_and_the_commands_own_status(cages):
    done = cages.execute("sh", "-c", "echo out; echo err >&2; cat; exit 7", input=b"from stdin")
    assert (done.status, done.stdout, done.stderr) == (7, "out\nfrom stdin", "err\n"), done


def test_binary_data_both_ways(kind):
    data = bytes(range(256)) * 2000
    stdout, stderr, status = python_bytes(kind, "cat", data=data, output="2MB")
    assert (stdout == data, stderr, status) == (True, b"", 0)


def test_closed_input_ends_at_once(kind):
    assert kind.execute("cat").status == 0


def test_input_that_nobody_reads_does_no_harm(kind):
    assert python_bytes(kind, "true", data=b"x" * 900_000)[2] == 0


@pytest.mark.parametrize("argv, status", [
    (("sh", "-c", "kill -TERM $$"), 143), (("sh", "-c", "kill -KILL $$"), 137), (("no-such-program",), 127),
    (("/bin/not-a-program",), 126), (("/etc",), 126), (("false",), 1)],
    ids=["terminated", "killed", "not found", "not executable", "a directory", "failed"])
def test_status_is_that_of_a_shell(kind, argv, status):
    done = kind.execute(*argv)
    assert done.status == status, done
    if status in (126, 127):
        assert argv[0] in done.stderr, done


def test_result_of_a_signal_names_it(kind):
    outcome = kind.result("sh", "-c", "echo before; kill -USR1 $$; echo after")
    assert (outcome.verdict, outcome.result["signal"], outcome.stdout) == ("signaled", "SIGUSR1", "before\n"), outcome
    assert outcome.result["exit_code"] is None


def test_terminal_is_the_commands_own(cages):
    if cages.engine.is_gvisor:
        done = cages.command("exec", "--tty", "--policy", cages.policy(), "--tool", "t", "--json", "--", "true")
        assert done.status != 0 or json.loads(done.stdout)["verdict"] == "error", done
        return
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 117, 0, 0))
    process = cages.start("exec", "--tty", "--policy", cages.policy(), "--tool", "t", "--", "sh", "-c",
                          "test -t 0 && test -t 1 && test -t 2 && stty size; read line; echo got:$line; tty; exit 3",
                          stdin=slave, stdout=slave, stderr=slave)
    try:
        seen, typed, end = "", False, time.monotonic() + 20 * TIME_SCALE
        while "got:words" not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 4096).decode()
            if "31 117" in seen and not typed:
                os.write(master, b"words\r")
                typed = True
        assert "got:words" in seen, seen
        assert process.wait(20 * TIME_SCALE) == 3
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)


# ---- what is inside -----------------------------------------------------------------------------

LOOK = r"""
say() { printf '%s=%s\n' "$1" "$2"; }
can() { if "$@" 2>/dev/null >/dev/null; then echo yes; else echo no; fi; }
say uid "$(id -u)"
say pwd "$PWD"
say readme "$(cat /docs/readme.txt 2>&1)"
say hidden "$(cat /docs/sub/hidden.txt 2>/dev/null)"
say secret "$(ls / | grep -c secret)"
say image "$(cat /etc/image-file 2>&1)"
say write_docs "$(can touch /docs/new)"
say write_readme "$(can sh -c 'echo x >>/docs/readme.txt')"
say write_work "$(can sh -c 'echo made >/work/made')"
say write_root "$(can touch /new)"
say write_bin "$(can touch /bin/new)"
say write_etc "$(can touch /etc/new)"
say write_tmp "$(can sh -c 'echo x >/tmp/new')"
say write_shm "$(can sh -c 'echo x >/dev/shm/new')"
say exec_tmp "$(can sh -c 'cp /bin/busybox /tmp/true && /tmp/true')"
say write_volume "$(can touch /volume/new)"
say write_entry "$(can sh -c 'cd /.toolcage* && (echo x >entry || echo x >new)')"
say change_entry "$(can sh -c 'chmod 777 /.toolcage*/entry || chmod 777 /.toolcage* || mv /.toolcage* /tmp/moved')"
say capabilities "$(sed -n 's/^Cap\(Prm\|Eff\|Bnd\|Inh\|Amb\):\s*//p' /proc/self/status | sort -u | tr '\n' ' ')"
say no_new_privileges "$(sed -n 's/^NoNewPrivs:\s*//p' /proc/self/status)"
say seccomp "$(sed -n 's/^Seccomp:\s*//p' /proc/self/status)"
say setuid "$(/evil/busybox-setuid id -u 2>/dev/null)"
say setuid_effective "$(/evil/busybox-setuid sed -n 's/^Uid:\s*//p' /proc/self/status 2>/dev/null | cut -f2)"
say disk "$(can dd if=/evil/disk of=/dev/null bs=1 count=1)"
say devices "$(ls /dev | tr '\n' ' ')"
say sys "$(ls /sys 2>/dev/null | wc -l)"
say interfaces "$(sed -n 's/^ *\([a-z0-9]*\):.*/\1/p' /proc/net/dev 2>/dev/null | tr '\n' ' ')"
say processes "$(ls /proc | grep -c '^[0-9]')"
say core "$(ulimit -c)"
say files "$(ulimit -n)"
say hosts "$(can grep -q localhost /etc/hosts)"
say passwd "$(can test -s /etc/passwd)"
say kernel_memory "$(head -c 1 /proc/kcore 2>/dev/null | wc -c)"
say sysctl "$(can sh -c 'echo x >/proc/sys/kernel/domainname')"
say mount "$(can mount -t tmpfs none /tmp)"
say null "$(can sh -c 'echo x >/dev/null')"
say random "$(head -c 8 /dev/urandom | wc -c)"
"""


@pytest.fixture(scope="module")
def look(quick):
    for name in ("made",):
        with contextlib.suppress(FileNotFoundError):
            (quick.place / "work" / name).unlink()
    return quick.result("sh", "-c", LOOK, fs={"hidden": ["/docs/sub/hidden.txt"]}, files=100)


@pytest.mark.native
def test_granted_paths_and_nothing_else(look):
    said = look.said
    assert look.verdict == "ok", look
    assert (said["readme"], said["hidden"], said["secret"]) == ("read me", "", "0"), look
    assert (said["write_docs"], said["write_readme"], said["write_work"]) == ("no", "no", "yes"), look
    assert said["pwd"] == "/work" and said["image"] == "from the image", look


@pytest.mark.native
def test_root_is_read_only_and_scratch_is_there(look):
    said = look.said
    assert {said[f"write_{name}"] for name in ("root", "bin", "etc", "volume", "entry")} == {"no"}, look
    assert said["change_entry"] == "no", look
    assert {said["write_tmp"], said["write_shm"], said["exec_tmp"]} == {"yes"}, look


@pytest.mark.native
def test_no_privileges(look):
    said = look.said
    assert set(said["capabilities"].split()) == {"0" * 16}, look
    # /proc/kcore may be there, with something empty over it.
    assert said["mount"] == said["sysctl"] == "no" and said["kernel_memory"] == "0", look


@pytest.mark.native
def test_no_new_privileges_and_a_filter(quick, look):
    if quick.engine.is_gvisor:
        # gVisor's own kernel keeps the bit and shows it since 2023 only.
        assert look.said["no_new_privileges"] in ("1", ""), look
        return
    assert look.said["no_new_privileges"] == "1" and look.said["seccomp"] == "2", look


@pytest.mark.native
def test_setuid_programs_and_devices_of_an_image_do_nothing(look):
    assert look.said["setuid"] == look.said["uid"] and look.said["disk"] == "no", look
    assert look.said["setuid_effective"] in (look.said["uid"], ""), look


@pytest.mark.native
def test_devices_are_few(quick, look):
    allowed = {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "ptmx", "pts",
               "shm", "mqueue", "console", "core"}
    if quick.engine.is_gvisor:
        allowed |= {"fuse", "net"}  # of gVisor's own kernel, which serves nobody but this container
    assert set(look.said["devices"].split()) <= allowed, look
    assert look.said["null"] == "yes" and look.said["random"] == "8", look


@pytest.mark.native
def test_no_network_unless_granted(look):
    assert look.said["interfaces"].split() in ([], ["lo"]), look


@pytest.mark.native
def test_own_processes_only(look):
    assert int(look.said["processes"]) < 12, look


@pytest.mark.native
def test_no_sys_tree_of_the_host(quick, look):
    if not quick.engine.is_gvisor:  # gVisor makes up one of its own
        assert look.said["sys"] == "0", look


@pytest.mark.native
def test_limits_of_a_process(look):
    assert look.said["files"] == "100" and look.said["core"] == "0", look


@pytest.mark.native
def test_files_belong_to_whom_the_directory_belongs(quick, look):
    info = (quick.place / "work/made").stat()
    assert (info.st_uid, info.st_gid) == (quick.owner, quick.owner), look


def test_generated_system_files(look):
    assert look.said["hosts"] == look.said["passwd"] == "yes", look


@pytest.mark.native
def test_result_says_what_was_in_force(quick, look):
    check_schema(look.result)
    assert look.result["backend"] == quick.engine.backend
    layers = look.result["layers"]
    words = layers.split() if isinstance(layers, str) else layers
    wanted = {"gvisor"} if quick.engine.is_gvisor else {"seccomp", "nonewprivs"}
    assert wanted <= {word.split(":")[0] for word in words}, layers
    assert "cgroup:v2" in words or not only_version_2(), layers
    assert look.result["usage"]["duration_ms"] > 0 and look.result["usage"]["cpu_ms"] is not None


def test_environment_is_built_from_nothing(cages):
    outcome = cages.result("env", env={"GIVEN": "by the policy"})
    names = {line.split("=", 1)[0] for line in outcome.stdout.splitlines()}
    assert names == {"PATH", "HOME", "LANG", "TMPDIR", "GIVEN"}, outcome
    assert outcome.said["GIVEN"] == "by the policy" and "/evil" not in outcome.said["PATH"], outcome


# ---- limits -------------------------------------------------------------------------------------


@pytest.mark.native
def test_timeout_kills_and_removes(kind):
    """The limit is one that a slow engine's container is made in; one that is not made in time is an error, and then
    there is more time."""
    is_quick = kind.engine.is_bare and not kind.engine.is_gvisor
    limits = ("3s" if EMULATED else "700ms",) * is_quick + ("8s" if EMULATED else "2500ms", "20s")
    for limit in limits:
        begin = time.monotonic()
        outcome = kind.result("sh", "-c", "sleep 300 & sleep 300", timeout=limit)
        if outcome.verdict != "error":
            break
    assert outcome.verdict == "timeout" and time.monotonic() - begin < BOUNDED_SECONDS, outcome
    assert not eventually(lambda: kind.containers() & {outcome.result["sandbox_id"]})
    if is_quick and not EMULATED:
        assert any(kind.execute("sleep", "300", timeout=longer).status == 124 for longer in (limit, "20s"))


def test_time_of_making_the_container_is_not_taken_for_the_tools(kind):
    """A container that is not there in time is no timeout of the tool that says nothing."""
    outcome = kind.result("true", timeout="10ms")
    assert outcome.verdict in ("ok", "timeout", "error") and (outcome.verdict == "ok" or outcome.result["reason"]), outcome


def test_output_is_capped(kind):
    outcome = kind.result("yes", output="64KB")
    assert outcome.verdict == "output" and len(outcome.stdout) <= 64000, outcome


@pytest.mark.native
def test_memory_verdict(cages):
    outcome = cages.result("attempt", "memory-anonymous", "400", memory="96MB")
    assert outcome.verdict == "memory", outcome
    assert EMULATED or cages.execute("attempt", "memory-anonymous", "400", memory="96MB").status == 137


@pytest.mark.parametrize("argv, policy, verdicts", [
    pytest.param(("fork-bomb", "64"), {"pids": 24}, {"pids", "failed"}, marks=pytest.mark.native),
    (("cpu-burn", "1500"), {"cpu_time": "300ms"}, {"cpu"}),
    (("open-files", "200"), {"files": 64}, {"failed"}),
    (("scratch-fill", "/tmp", "24"), {}, {"failed"}),
    (("disk-one-file", "/work", "24"), {"disk": "8MB"}, {"disk", "failed"}),
], ids=["pids", "cpu_time", "files", "scratch", "disk"])
def test_limit_holds(quick, argv, policy, verdicts):
    if argv[0] == "fork-bomb" and quick.engine.is_gvisor:
        policy = {"pids": 64}  # gVisor's own threads count
        argv = ("fork-bomb", "200")
    outcome = quick.result("attempt", *argv, **policy)
    assert outcome.verdict in verdicts and "ESCAPED" not in outcome.stdout, outcome
    if argv[0] == "disk-one-file":
        used = sum(path.stat().st_blocks * 512 for path in (quick.place / "work").rglob("*"))
        assert used < 10_000_000, used
        for path in (quick.place / "work").iterdir():
            path.unlink()


@pytest.mark.parametrize("name", [name for name in CHOSEN if name in ("crun", "gvisor")])
def test_disk_bounds_what_is_written_to_a_writable_root(lab, name):
    """In all, not for each file, and where nothing else would: it lies in memory, whose limit is off."""
    script = ("for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=/$i bs=1000000 count=7 || break; done;"
              "cat /[1-9] | wc -c")
    container = {"read_only_rootfs": False} | ({"user": "0"} if name == "crun" else {})
    outcome = cages_of(lab, name).result("sh", "-c", script, container=container, disk="8MB", memory="unlimited")
    assert 7_000_000 <= int(outcome.stdout) <= 8_000_000 + 4096, outcome


def test_limit_that_cannot_be_kept_is_refused(lab):
    """An ordinary user's Podman without control groups: a limit is refused, never dropped."""
    cages = cages_of(lab, "podman-user")
    if not IS_ROOT:
        pytest.skip("the groups of whoever runs the tests are not ours to take away")
    made = object.__new__(Cages)
    made.__dict__ |= cages.__dict__ | {"caller": Caller("user", cages.caller.uid)}
    outcome = made.result("true", memory="64MB", pids="unlimited", cpu="unlimited")
    assert outcome.verdict == "error" and "memory" in outcome.result["reason"] and outcome.result["fix"], outcome
    free = made.result("true", memory="unlimited", pids="unlimited", cpu="unlimited")
    assert free.verdict == "ok", free


# ---- files brought back -------------------------------------------------------------------------


def test_outputs_are_brought_back(cages):
    script = ("mkdir -p /tmp/deep /work/out && echo a >/tmp/a.txt && echo b >/tmp/b.other && echo c >/tmp/deep/c && "
              "echo d >/work/out/d.txt && ln -s /etc/passwd /tmp/link.txt && ln -s /etc/passwd /work/out/link.txt")
    outcome = cages.shell(script, outputs=["/tmp/*.txt", "/tmp/deep/**", "/work/out/*.txt"])
    assert sorted(file["path"] for file in outcome.result["files"]) == ["/tmp/a.txt", "/tmp/deep/c", "/work/out/d.txt"]
    assert {file["size"] for file in outcome.result["files"]} == {2}
    for path in sorted((cages.place / "work/out").iterdir()):
        path.unlink()
    (cages.place / "work/out").rmdir()


# ---- who runs -----------------------------------------------------------------------------------


def wait_until(look, seconds=20):
    end = time.monotonic() + seconds * TIME_SCALE
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def test_sandbox_id_is_the_containers(cages):
    mark = cages.place / "work/started"
    process = cages.start("exec", "--policy", cages.policy(), "--tool", "t", "--json", "--", "sh", "-c",
                          "touch /work/started; while [ -e /work/started ]; do sleep 0.05; done")
    try:
        assert wait_until(mark.exists), "it does not start"
        alive = cages.containers()
        mark.unlink()
        result = json.loads(cages.finish(process).stdout)
    finally:
        mark.unlink(missing_ok=True)
        process.kill()
        process.wait()
    assert result["verdict"] == "ok", result
    if cages.engine.is_bare:
        assert re.fullmatch(r"tc-[0-9a-f]{16}", result["sandbox_id"])
    else:
        assert alive == {result["sandbox_id"]} and re.fullmatch(r"[0-9a-f]{64}", result["sandbox_id"])
        assert not eventually(cages.containers)


def test_ten_calls_at_once(kind):
    policy = kind.policy()
    running = [kind.start("exec", "--policy", policy, "--tool", "t", "--json", "--", "sh", "-c", f"echo {number}; exit 5")
               for number in range(10)]
    results = [json.loads(kind.finish(process).stdout) for process in running]
    assert [result["stdout"] for result in results] == [f"{number}\n" for number in range(10)], results
    assert {result["exit_code"] for result in results} == {5}
    assert len({result["sandbox_id"] for result in results}) == 10


# ---- tools --------------------------------------------------------------------------------------


def test_builtin_file_tools_and_a_tools_contract(kind):
    tools = {name: {"builtin": name} for name in ("write_file", "read_file", "list_dir")}
    tools["count"] = {"command": ["sh", "-c", "printf '{{\"n\":%s}}' \"$(cat | wc -c)\""],
                      "returns": {"type": "object", "required": ["n"]}}
    path = kind.policy(tools)

    def call(name, **arguments):
        done = kind.command("call", "--policy", path, "--json", "--no-journal", name, json.dumps(arguments))
        assert done.stdout.startswith("{"), done
        result = json.loads(done.stdout)
        assert result["verdict"] == "ok", result
        return result["output"]

    call("write_file", path="/work/note.txt", content="one\ntwo\n")
    assert (kind.place / "work/note.txt").read_text() == "one\ntwo\n"
    assert "two" in json.dumps(call("read_file", path="/work/note.txt"))
    assert "note.txt" in json.dumps(call("list_dir", path="/work"))
    assert call("count", a=1)["n"] > 0
    (kind.place / "work/note.txt").unlink()


def test_recorded_call_is_replayed_without_a_container(kind):
    journal = kind.place / "work/journal.db"
    path = kind.policy(command=["date", "+%s%N"])
    words = ("call", "--policy", path, "--journal", journal, "--session", "s", "--json")
    live = kind.command(*words, "t", "{}")
    again = kind.command(*words, "--mode", "replay", "t", "{}", env={"DOCKER_HOST": "unix:///none", "PATH": "/none"})
    assert json.loads(live.stdout)["verdict"] == "ok", live
    assert again.stdout.replace('"mode":"replay"', '"mode":"live"') == live.stdout, again
    for one in (kind.place / "work").glob("journal.db*"):
        one.unlink()


@pytest.mark.parametrize("name", [name for name in CHOSEN if name in ("crun", "gvisor", "docker", "podman-user")])
def test_image_of_our_own_is_the_default(lab, name):
    """Without `rootfs` and `image`: what is built here, with the programs that models call."""
    cages = cages_of(lab, name)
    cages.with_own_image()
    script = ("bash -c 'echo $((6 * 7))'; python3 -c 'import json, ssl, sqlite3; print(json.dumps([1]))'; "
              "git --version | cut -d' ' -f1; curl --version | cut -d' ' -f1 | head -1; "
              # Not ls: runsc of Debian 12 answers coreutils' statx(AT_NO_AUTOMOUNT) with EINVAL.
              "python3 -c 'import os; print(len(os.listdir(\"/etc/ssl/certs\")))'")
    outcome = cages.shell(script, rootfs=None, image=None)
    lines = outcome.stdout.splitlines()
    assert lines[:4] == ["42", "[1]", "git", "curl"] and int(lines[4]) > 0, outcome
    code = cages.command("call", "--policy", cages.policy({"py": {"builtin": "python", "rootfs": None, "image": None}}),
                         "--json", "--no-journal", "py", json.dumps({"code": "print(2 ** 10)"}))
    assert json.loads(code.stdout)["verdict"] == "ok" and "1024" in code.stdout, code


# ---- network ------------------------------------------------------------------------------------

FETCH = """
printf 'allowed='; gate-client get 4 allowed.test 80 2>&1 | tail -1
printf 'refused='; gate-client get 4 refused.test 80 2>&1 | tail -1
printf 'address='; nc -w 2 93.184.216.35 80 </dev/null >/dev/null 2>&1 && echo yes || echo no
"""


@pytest.fixture(scope="module")
def in_the_world(cages, world):  # noqa: F811
    """The same cages, with toolcage in a network of the tests' own."""
    made = object.__new__(Cages)
    prefix = tuple(world._inside(world.host))
    made.__dict__ |= cages.__dict__ | {"world": world}
    made.caller = Caller(cages.caller.name, cages.caller.uid, cages.caller.groups, prefix)
    # nsenter is root's: it becomes the caller afterwards.
    inner = made.caller
    if inner.uid:
        inner.prefix = (*prefix, "setpriv", f"--reuid={inner.uid}", f"--regid={inner.uid}", "--clear-groups", "--")
    inner.become = lambda: inner.groups.enter() if inner.groups else None
    return made


def test_named_rule_leads_through_the_gate(in_the_world):
    outcome = in_the_world.result("sh", "-c", FETCH, network=["allowed.test:80"], memory="256MB")
    assert outcome.verdict == "ok", outcome
    assert "hello" in outcome.said["allowed"], outcome
    assert "hello" not in outcome.said["refused"] and outcome.said["address"] == "no", outcome
    denied = {entry["target"] for entry in outcome.result["denials"] if entry["kind"] == "network"}
    assert any("refused.test" in target for target in denied), outcome
    assert [entry["name"] for entry in outcome.result["connections"]] == ["allowed.test"], outcome


def test_host_network_needs_the_key(cages):
    refused = cages.result("true", network="host")
    assert refused.verdict in ("error", "denied") and "allow_host_network" in json.dumps(refused.result), refused
    script = "sed -n 's/^ *\\([a-z0-9]*\\):.*/\\1/p' /proc/net/dev"
    allowed = cages.result("sh", "-c", script, network="host", allow_host_network=True)
    if allowed.verdict == "error":
        # An engine that cannot give it says so.
        assert allowed.result["reason"] and allowed.result["fix"], allowed
        return
    own = {line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line}
    assert set(allowed.stdout.split()) == own, allowed


# ---- nothing is left ----------------------------------------------------------------------------


def test_nothing_is_left_after_kills_at_random_moments(kind):
    """SIGKILL while the container is made, while it runs, while it ends; then one call in good order."""
    rng, policy = random.Random(11), kind.policy()
    cost = 0.12 if kind.engine.is_bare and not kind.engine.is_gvisor else 0.7
    before = kind.traces()
    with adopting() as below:
        running = []
        for _ in range(12):
            process = kind.start("exec", "--policy", policy, "--tool", "t", "--", "sh", "-c", "sleep 100 & sleep 100",
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running.append((time.monotonic() + rng.random() * cost * TIME_SCALE, process))
            if len(running) == 4:
                for moment, one in sorted(running, key=lambda entry: entry[0]):
                    time.sleep(max(0, moment - time.monotonic()))
                    one.kill()
                    one.wait()
                running = []
        time.sleep(0.3)
        assert kind.execute("true").status == 0
        left = eventually(lambda: kind.traces() - before, 30)
        assert not left, left

        def alive():
            return {pid: command for pid, command in below().items()
                    if "service" not in command and "catatonit" not in command and "pause" not in command}

        left = eventually(alive, 30)
        assert not left, left


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_nothing_is_left_after_a_signal(cages, ending):
    mark = cages.place / "work/started"
    process = cages.start("exec", "--policy", cages.policy(), "--tool", "t", "--", "sh", "-c",
                          "trap '' TERM INT; touch /work/started; sleep 100 & sleep 100")
    try:
        assert wait_until(mark.exists), "it does not start"
        process.send_signal(ending)
        status = process.wait(20 * TIME_SCALE)
    finally:
        process.kill()
        process.wait()
        mark.unlink(missing_ok=True)
        process.stdout.close()
        process.stderr.close()
    assert status in (128 + ending, -ending, 125)
    assert not eventually(cages.containers)


SERVED = [name for name in CHOSEN if name in ("docker", "podman")]  # with a daemon that can be asked, or be gone


@pytest.mark.parametrize("name", SERVED)
def test_volumes_and_networks_are_not_made(lab, name):
    cages = cages_of(lab, name)
    assert not (cages.api.get("/volumes").get("Volumes") or [])
    assert {one["Name"] for one in cages.api.get("/networks")} <= {"none", "host", "bridge", "podman"}


def test_missing_image_is_an_error_with_a_remedy(kind):
    key = "rootfs" if kind.engine.is_bare else "image"
    outcome = kind.result("true", **{key: "/no/such/directory" if kind.engine.is_bare else "no-such-image:1"})
    assert outcome.verdict == "error" and "no" in outcome.result["reason"] and outcome.result["fix"], outcome


@pytest.mark.parametrize("name", SERVED)
def test_no_engine_is_taken_instead_of_a_missing_one(lab, name):
    """The named engine does not answer: that is an error, even where another one is."""
    cages = cages_of(lab, name)
    nobody = {"DOCKER_HOST": "unix:///none", "CONTAINER_HOST": "unix:///none"}
    outcome = cages.command("exec", "--policy", cages.policy(), "--tool", "t", "--json", "--", "true", env=nobody)
    result = json.loads(outcome.stdout)
    assert result["verdict"] == "error" and name in result["reason"] and result["fix"], result
