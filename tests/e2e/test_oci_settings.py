# SPDX-License-Identifier: Apache-2.0
"""Settings in the words of other sandboxes map one to one to `container` and `network`: NetworkMode none, bridge and
host, CapDrop and CapAdd, ReadOnlyRootfs, NoNewPrivileges, mounts with read-only. Each is seen where the engine keeps it
(its own inspect) and in force inside."""

import json
import time

import pytest

from container_lab import cages_of
from native import SLOW, TIME_SCALE

pytestmark = pytest.mark.container

CHOSEN = ["crun", "docker"] if SLOW else ["crun", "runc", "docker", "podman", "podman-user"]
CAP_CHOWN, CAP_NET_BIND = 1 << 0, 1 << 10


@pytest.fixture(scope="module", params=CHOSEN)
def cages(request, lab):
    return cages_of(lab, request.param)


def status(outcome, name):
    return int(outcome.said[name].split()[0], 16)


LOOK = r"""
for name in CapPrm CapEff CapBnd CapInh CapAmb NoNewPrivs Seccomp; do
    printf '%s=' $name; sed -n "s/^$name:\s*//p" /proc/self/status
done
for path in / /etc /extra /extra/fixed; do
    if touch $path/new 2>/dev/null; then echo "write$path=yes"; else echo "write$path=no"; fi
done
printf 'extra='; cat /extra/word 2>/dev/null || echo
printf 'user='; id -u; printf 'group='; id -g
printf 'interfaces='; sed -n 's/^ *\([a-z0-9]*\):.*/\1/p' /proc/net/dev | tr '\n' ' '
"""


@pytest.fixture(scope="module")
def extra(cages):
    """A directory for `mounts`, with one in it that is mounted read-only."""
    import os
    base = cages.place / "extra"
    if not base.exists():
        (base / "fixed").mkdir(parents=True)
        (base / "word").write_text("mounted\n")
        for path in (base, *base.rglob("*")):
            os.chown(path, cages.owner, cages.owner)
    return base


def test_nothing_said_is_the_hardened_way(cages):
    outcome = cages.shell(LOOK)
    assert [status(outcome, name) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")] == [0] * 5, outcome
    assert outcome.said["NoNewPrivs"] == "1" and outcome.said["Seccomp"] == "2", outcome
    assert outcome.said["write/"] == outcome.said["write/etc"] == "no", outcome
    assert outcome.said["interfaces"].split() in ([], ["lo"]), outcome


def test_cap_add_adds_one_and_cap_drop_takes_it_back(cages):
    outcome = cages.shell(LOOK, container={"cap_drop": ["ALL"], "cap_add": ["NET_BIND_SERVICE"]})
    assert status(outcome, "CapBnd") == CAP_NET_BIND, outcome
    outcome = cages.shell(LOOK, container={"cap_drop": ["ALL"], "cap_add": []})
    assert status(outcome, "CapBnd") == 0, outcome


def test_read_only_rootfs_false_writes_to_this_container_only(cages, lab):
    container = {"read_only_rootfs": False, "user": "0"}
    outcome = cages.result("sh", "-c", "echo changed >/etc/image-file; cat /etc/image-file; touch /new && echo made",
                           container=container)
    if outcome.verdict == "error":
        assert outcome.result["fix"], outcome  # an engine that cannot have it says so
        return
    assert (lab.rootfs() / "etc/image-file").read_text() == "from the image\n"
    again = cages.shell("cat /etc/image-file; ls /new 2>/dev/null || true", container=container)
    assert again.stdout == "from the image\n", again


def test_no_new_privileges_false(cages):
    outcome = cages.result("sh", "-c", LOOK, container={"no_new_privileges": False})
    if outcome.verdict == "error":
        assert outcome.result["reason"] and outcome.result["fix"], outcome
    else:
        assert outcome.said["NoNewPrivs"] in ("0", "1"), outcome


def test_mounts_with_read_only(cages, extra):
    mounts = [{"host": str(extra), "cage": "/extra", "read_only": False},
              {"host": str(extra / "fixed"), "cage": "/extra/fixed", "read_only": True}]
    outcome = cages.shell(LOOK, container={"mounts": mounts})
    assert outcome.said["extra"] == "mounted" and outcome.said["write/extra"] == "yes", outcome
    assert outcome.said["write/extra/fixed"] == "no", outcome
    (extra / "new").unlink()


def test_user_is_the_one_of_the_policy(cages):
    outcome = cages.result("sh", "-c", LOOK, container={"user": "1234:1235"})
    if outcome.verdict == "error":
        assert "user" in outcome.result["reason"] and outcome.result["fix"], outcome
        return
    assert (outcome.said["user"], outcome.said["group"]) == ("1234", "1235"), outcome


@pytest.fixture(scope="module", params=[name for name in CHOSEN if name in ("docker", "podman")])
def inspected(request, lab):
    """What the engine says about a container of ours that runs. Bare runtimes keep nothing to ask: their bundle is
    tested in tests/unit/test_oci_spec.c."""
    cages = cages_of(lab, request.param)
    mark = cages.place / "work/inspect"
    process = cages.start("exec", "--policy", cages.policy(), "--tool", "t", "--json", "--", "sh", "-c",
                          "touch /work/inspect; while [ -e /work/inspect ]; do sleep 0.05; done")
    try:
        end = time.monotonic() + 20 * TIME_SCALE
        while not mark.exists() and time.monotonic() < end:
            time.sleep(0.02)
        found = [cages.api.inspect(one) for one in cages.api.containers()]
    finally:
        mark.unlink(missing_ok=True)
        done = cages.finish(process)
    assert json.loads(done.stdout)["verdict"] == "ok" and len(found) == 1, done
    return found[0]


def test_engine_itself_says_that_it_is_hardened(inspected):
    host = inspected["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] is True and host["AutoRemove"] is True
    assert not host["Privileged"] and not host.get("PublishAllPorts") and not host.get("Devices")
    assert any("no-new-privileges" in option for option in host["SecurityOpt"]), host["SecurityOpt"]
    assert not any("unconfined" in option for option in host["SecurityOpt"]), host["SecurityOpt"]
    dropped = host["CapDrop"] or []
    assert "ALL" in [word.upper() for word in dropped] or len(dropped) >= 10, dropped
    assert not host["CapAdd"]
    assert host["IpcMode"] in ("private", "none", "shareable")  # the last is Podman's word for one of its own
    assert host.get("PidMode", "") in ("", "private")


def test_engine_itself_says_what_runs(inspected):
    config = inspected["Config"]
    words = [inspected["Path"], *inspected["Args"]]
    assert words[0].startswith("/.toolcage-") and "/bin/false" not in words, words
    assert config["Labels"]["io.toolcage.owner"] != "1:1:1"
    assert config.get("Healthcheck") in (None, {"Test": ["NONE"]}) or config["Healthcheck"]["Test"] == ["NONE"]
    assert "FROM_IMAGE=yes" not in json.dumps(words)


def test_engine_itself_keeps_no_output(inspected):
    assert inspected["HostConfig"]["LogConfig"]["Type"] in ("none", "passthrough")


@pytest.mark.parametrize("word", ["bridge", "public"])
def test_bridge_is_the_public_internet_through_the_gate(cages, word):
    """NetworkMode bridge: names and addresses of the internet, and not those of the host or of private networks."""
    listener = __import__("socket").create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    outcome = cages.result("sh", "-c", f"nc -w 2 127.0.0.1 {port} </dev/null && echo reached || echo held", network=word)
    listener.close()
    assert outcome.verdict == "ok" and outcome.stdout == "held\n", outcome


def test_network_none(cages):
    outcome = cages.shell("nc -w 1 93.184.216.34 80 </dev/null && echo reached || echo held", network="none")
    assert outcome.stdout == "held\n", outcome
