# SPDX-License-Identifier: Apache-2.0
"""Attacks on policies and pins through mounts and second names: what decides what a tool may do is seen, by another
path, where the tool may write. Each server has a mount namespace of its own, which ends with it."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from conftest import TIME_SCALE
from mcp_client import McpClient, command
from native import IS_ROOT
from test_mcp_attacks import IN_FORCE, TWO, first_text, names, replace
from waiting import wait_until

SERVER = Path(__file__).with_name("wrapped_server.py")
NOT_WATCHED = "a tool can write this policy (lint: TC-L104)"

pytestmark = pytest.mark.skipif(not IS_ROOT, reason="mounts")


def inside(mounts, *args):
    """The command, among mounts."""
    return ["/usr/bin/unshare", "--mount", "--propagation", "private", "sh", "-ec", f'{mounts}\nexec "$@"', "sh", command(),
            *map(str, args)]


@pytest.fixture(name="host")
def _host(tmp_path):
    """Directories: etc for what decides, data for tools, and some more."""
    tmp_path.chmod(0o755)
    for name in ("etc", "data/conf", "other", "low", "up", "work"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


# ---- mcp: a tool writes its own policy


POLICY = """version = 1
[defaults]
backend = "jail"
network = "none"
[tool.sh]
command = ["sh", "-c", "{{script}}"]
filesystem = {{ writable = [{{ host = "{host}/data", cage = "/w" }}] }}
parameters = {{ type = "object", properties = {{ script = {{ type = "string" }} }} }}
[tool.root]
command = ["echo", "ran"]
[agent.a]
grants = ["sh"]
"""
# Mounts, and the name of the policy in the cage.
WAYS = {
    "directory_below": ("mount --bind etc data/conf", "conf/policy.toml"),
    "file_below": ("mkdir data/x; touch data/x/f; mount --bind etc/policy.toml data/x/f", "x/f"),
    "other_file_system_below": ("mount -t tmpfs none other; mkdir other/x; cp etc/policy.toml other/x; "
                                "mount --bind other/x etc; mount --bind other data/conf", "conf/x/policy.toml"),
    "directory_above": ("mv etc/policy.toml data/conf; mount --bind data/conf etc", "conf/policy.toml"),
    "upper_layer": ("mount -t tmpfs none other; mkdir other/up other/work; mount --bind other/up data/conf; "
                    "mv etc/policy.toml other/up; "
                    "mount -t overlay overlay -o lowerdir=$PWD/low,upperdir=$PWD/other/up,workdir=$PWD/other/work etc",
                    "conf/policy.toml"),
}


@pytest.mark.parametrize("way", WAYS)
def test_tool_that_can_write_its_policy_through_a_mount_changes_nothing(host, way):
    mounts, name = WAYS[way]
    policy = host / "etc" / "policy.toml"
    policy.write_text(POLICY.format(host=host), encoding="utf-8")
    script = f"sed 's/^grants = .*/grants = [\"sh\", \"root\"]/' /w/{name} >/tmp/new && cat /tmp/new >/w/{name} && echo written"
    with McpClient().start(inside(f"cd {host}; {mounts}", "mcp", "--policy", policy, "--agent", "a", "--no-journal")) as client:
        client.initialize()
        said = first_text(client.wait_response(client.post_call("sh", {"script": script})))
        if "has no idmapped mounts" in said:
            pytest.skip("Linux before 6.3: a tool of root's cannot be given such a file system")
        assert said == "written\n"
        assert wait_until(lambda: NOT_WATCHED in client.stderr())
        time.sleep(0.7 * TIME_SCALE)
        assert "Unknown tool" in first_text(client.wait_response(client.post_call("root")))
        assert IN_FORCE not in client.stderr()


@pytest.mark.parametrize("mounts", ["true", "mount --bind other data/conf", "mount --bind low etc2",
                                    "mount --bind -o ro etc data/conf"],
                         ids=["no_mount", "other_directory_below", "mount_beside", "read_only"])
def test_policy_that_no_tool_can_write_is_watched(host, mounts):
    (host / "etc2").mkdir()
    policy = host / "etc" / "policy.toml"
    text = POLICY.format(host=host)
    policy.write_text(text, encoding="utf-8")
    with McpClient().start(inside(f"cd {host}; {mounts}", "mcp", "--policy", policy, "--agent", "a", "--no-journal")) as client:
        client.initialize()
        replace(policy, text.replace('["sh"]', '["sh", "root"]'))
        assert wait_until(lambda: len(names(client)) == 2 or NOT_WATCHED in client.stderr())
        assert NOT_WATCHED not in client.stderr()


@pytest.mark.parametrize("granted, watched", [("data", False), ("data/conf", False), ("data/con", True)])
def test_policy_that_a_tool_can_write_above_its_bind_mount_is_not_watched(host, granted, watched):
    """The directory of the policy is mounted elsewhere, and there it has parents of which its path says nothing."""
    (host / "data" / "con").mkdir()
    policy = host / "data" / "conf" / "policy.toml"
    policy.write_text(TWO + f'[tool.two]\ncommand = ["true"]\nfilesystem = {{ writable = ["{host}/{granted}:/w"] }}\n',
                      encoding="utf-8")
    with McpClient().start(inside(f"cd {host}; mount --bind data/conf etc", "mcp", "--policy", host / "etc" / "policy.toml",
                                  "--no-journal")) as client:
        client.initialize()
        replace(policy, TWO)
        if watched:
            assert wait_until(lambda: names(client) == ["one"]), client.stderr()
        else:
            assert wait_until(lambda: NOT_WATCHED in client.stderr())
            time.sleep(0.7 * TIME_SCALE)
            assert names(client) == ["one", "two"]


# ---- wrap and pin: a server writes its own pin, policy or schema


class Wrapping:
    """A server that may write data; where its policy and pin are is said by the test."""

    def __init__(self, host, policy, pin):
        self.host, self.policy, self.pin = host, host / policy, host / pin

    def write(self, more=""):
        self.policy.write_text(f'version = 1\n[tool.w]\ncommand = ["python3", "/srv/server.py", "good"]\n'
                               f'filesystem = {{ readable = [{{ host = "{SERVER}", cage = "/srv/server.py" }}], '
                               f'writable = [{{ host = "{self.host}/data", cage = "/data" }}] }}\nmcp = {{}}\n{more}\n',
                               encoding="utf-8")

    def run(self, verb, mounts="true"):
        args = inside(f"cd {self.host}; {mounts}", "mcp", verb, "--policy", self.policy, "--tool", "w", "--pin", self.pin)
        return subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=60 * TIME_SCALE)

    def refused(self, what, mounts="true", verbs=("pin", "wrap")):
        for verb in verbs:
            run = self.run(verb, mounts)
            assert run.returncode == 125 and f"the tool could change the {what} " in run.stderr, (verb, run)


@pytest.mark.parametrize("what", ["policy", "pin"])
@pytest.mark.parametrize("mounts", ["mount --bind data/conf etc", "mount --bind etc data/conf"], ids=["above", "below"])
def test_server_that_can_write_what_binds_it_through_a_mount_is_not_started(host, what, mounts):
    """The files are there by both names, so that the mount changes nothing but who can write them."""
    wrapping = Wrapping(host, *(("etc/p.toml", "other/pin.json") if what == "policy" else ("other/p.toml", "etc/pin.json")))
    wrapping.write()
    assert wrapping.run("pin").returncode == 0
    for name in os.listdir(host / "etc"):
        (host / "data" / "conf" / name).write_bytes((host / "etc" / name).read_bytes())
    wrapping.refused(what, mounts)
    assert wrapping.run("wrap", "mount --bind low data/conf").returncode == 0


def test_server_that_can_write_what_binds_it_by_another_name_is_not_started(host):
    wrapping = Wrapping(host, "etc/p.toml", "etc/pin.json")
    wrapping.write()
    assert wrapping.run("pin").returncode == 0 and wrapping.run("wrap").returncode == 0
    os.link(wrapping.pin, host / "data" / "pin")
    wrapping.refused("pin", verbs=["wrap"])
    assert wrapping.run("pin").returncode == 0  # a new file, with one name
    assert wrapping.run("wrap").returncode == 0
    os.link(wrapping.policy, host / "data" / "policy")
    wrapping.refused("policy")


def test_server_that_can_write_a_schema_of_its_policy_is_not_started(host):
    wrapping = Wrapping(host, "p.toml", "etc/pin.json")
    for key in ("parameters", "returns"):
        for directory in ("data", "other"):
            (host / directory / "schema.json").write_text('{"type": "object"}', encoding="utf-8")
        wrapping.write(f'{key} = "other/schema.json"')
        assert wrapping.run("pin").returncode == 0
        wrapping.refused("schema", "mount --bind other data/conf")
        wrapping.write(f'[tool.other]\ncommand = ["true"]\n{key} = "data/schema.json"')
        wrapping.refused("schema")
