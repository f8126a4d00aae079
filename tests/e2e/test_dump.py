# SPDX-License-Identifier: Apache-2.0
"""`toolcage dump`: the normal form of a policy is a policy, means the same, and is its own normal form.

Checked for every example and for random policies over all keys. The generator is used by other tests too.
"""

import json
import random
import tomllib

import pytest

pytestmark = pytest.mark.reading

# ---- random policies -----------------------------------------------------------------------------

BACKENDS = {
    "process": ("process", "L1", "L1_PROCESS"),
    "jail": ("jail", "L2", "L2_CHROOT"),
    "oci": ("oci", "L3", "L3_DOCKER"),
    "gvisor": ("gvisor",),
    "wasm": ("wasm",),
    "microvm": ("microvm", "firecracker"),
}
ODD_TEXTS = (
    "", " ", "plain", "it's", 'say "hi"', "back\\slash", "tab\there", "two\nlines", "{braces}", "{{x}}", "$HOME",
    "caf\u00e9 \u65e5\u672c \U0001f600", "\x1b[31mred", "\x7f\x80\x9f", "\u2028\u2029\u202e", "\ufffe\uffff", "# no comment",
    "'''", '"""', "a = 1", "[table]", "end\\", "\r\n", "\U000e0041", "x" * 3000)
NAMES = ("a", "web_fetch", "A-1", "dotted.name", "9", "_", "x" * 64, "a.b-c_d", "true", "inf", "2027-01-01", "1e5")
RULE_HOSTS = ("a.example", "API.Example.COM", "b.example.", "*.example.org", "192.0.2.1", "10.0.0.0/8", "[2001:DB8::1]",
              "[2001:db8::/32]", "xn--bcher-kva.example", "a-b.c-d.example")
RULE_PORTS = ("443", "1", "65535", "80-90", "*")
BUILTINS = ("read_file", "write_file", "edit_file", "list_dir", "search_files", "http_fetch", "bash", "python")
CALLS = ("openat", "read", "ptrace", "bpf", "socket", "clone3")


class Generator:
    """Random policies that load. Everything that could contradict is chosen so that it does not."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def maybe(self, chance=0.5):
        return self.random.random() < chance

    def text(self):
        return "".join(self.random.choice(ODD_TEXTS) for _ in range(self.random.randint(0, 3)))

    def some(self, choices, most=4):
        return self.random.sample(list(choices), self.random.randint(0, min(most, len(choices))))

    def size(self, zero=False):
        texts = ["1B", "1.5kB", "64 MB", "128MiB", "2GB", "3TiB", "1000KB", "0.5KiB"]
        return self.random.choice(texts + (["0B"] if zero else ["unlimited"]))

    def duration(self):
        return self.random.choice(["1ms", "500ms", "30s", "1.5h", "2 m", "90s", "unlimited"])

    def count(self):
        return self.random.choice([1, 7, 2147483647, "unlimited"])

    def rule(self):
        return (self.random.choice(["", "allowlist:", "deny:"]) + self.random.choice(RULE_HOSTS) + ":" +
                self.random.choice(RULE_PORTS))

    def network(self):
        return self.random.choice(["none", "public", "bridge", "host", [], [self.rule() for _ in range(5)]])

    def network_limits(self):
        table = {"connections": self.count(), "bytes_in": self.size(), "bytes_out": self.size(), "rate": self.size()}
        return {key: table[key] for key in self.some(table, 4)}

    def path(self, number):
        stem = self.random.choice(["data", "caf\u00e9", "with space", "x.y", "-dash", "~", "${VAR}", "a'b\"c", "\u65e5\u672c"])
        return self.random.choice(["/{}/{}", "{}/{}", "./{}/./{}", "/gone/../{}/{}/"]).format(stem, number)

    def entry(self, number, mapped=True):
        cage = f"/cage/{number}"
        forms = [self.path(number)]
        if mapped:
            forms += [f"{self.path(number)}:{cage}", {"host": self.path(number), "cage": cage},
                      {"host": f"/colon:{number}", "cage": f"{cage}:x"}, {"host": f"/colon:{number}"},
                      {"host": self.path(number), "optional": True}]
        else:
            forms += [{"host": f"/colon:{number}"}, {"host": cage, "cage": cage}]
        return self.random.choice(forms)

    def filesystem(self, mapped=True):
        if self.maybe(0.2):
            return "none"
        numbers = iter(range(100))
        table = {}
        for access in self.some(("readable", "writable", "hidden"), 3):
            table[access] = [self.entry(next(numbers), mapped and access != "hidden") for _ in range(self.random.randint(0, 4))]
        scratch = self.size(zero=True) if self.maybe() else None
        if scratch:
            table["scratch"] = scratch
        if self.maybe():
            table.setdefault("writable", []).append({"host": "/work", "cage": "/work"})
            table["cwd"] = self.random.choice(["/work", "/work/below/.", "/work/a/../b"])
        return table

    def syscalls(self):
        calls = self.some(CALLS, 6)
        half = len(calls) // 2
        return self.random.choice(["default", "strict", "pure", {}, {
            "profile": self.random.choice(["default", "strict", "pure"]), "allow": calls[:half], "deny": calls[half:]}])

    def schema(self):
        value = {"type": "object", self.text() or "k": [self.text(), 1, -2.5, 1e300, 2 ** 53, True, {}],
                 "properties": {"url": {"default": self.text()}, "zz": {"maximum": 1e19}, "\u20ac": {}, "\ufb33": {}}}
        return self.random.choice([{}, True, False, value, json.dumps(value | {"null": None}),
                                   "  " + json.dumps(value, ensure_ascii=False)])

    def outputs(self):
        globs = self.some(("/cage/*.png", "/tmp/**/x", "/a b/[!x]?"), 3)
        return self.random.choice([globs, {"globs": globs}, {"globs": globs, "max_file": self.size(),
                                                             "max_files": self.count()}])

    def mcp(self):
        table = {"tools": self.some(("echo", "read_*", "caf\u00e9")), "message": self.random.choice(["1KiB", "4MB", "64MiB"]),
                 "features": self.some(("resources", "prompts", "logging", "completions", "sampling", "elicitation", "roots")),
                 "rate": self.count(), "calls": self.random.choice([1, 16, 1024]), "pin": self.path(0)}
        return {key: table[key] for key in self.some(table, 6)}

    def container(self):
        table = {"engine": self.random.choice(["podman", "docker", "none"]),
                 "runtime": self.random.choice(["crun", "runc", "runsc"]),
                 "user": self.random.choice(["1000", "nobody", "1000:1000"]),
                 "cap_drop": self.random.choice([[], ["ALL"], ["cap_chown", "NET_RAW"]]),
                 "cap_add": self.some(("NET_BIND_SERVICE", "CAP_KILL")),
                 "read_only_rootfs": self.maybe(), "no_new_privileges": self.maybe(),
                 "mounts": self.some(("/m1:/mnt/1", "/m2:/mnt/2:ro", "/m3:/mnt/3:rw", {"host": "/m:4", "cage": "/mnt/4"},
                                      {"host": "/m5", "cage": "/mnt/5", "read_only": False, "optional": True}))}
        return {key: table[key] for key in self.some(table, 8)}

    def command(self):
        elements = self.some(("--", "", "{url}", "https://{host}/{path-1}", "{{literal}}", "{list...}", "a b", "$(x)",
                              "caf\u00e9", "--x={y}"), 6)
        return [self.random.choice(["curl", "/usr/bin/env", "a b"]), *elements]

    def settings(self, where, backend):
        """The keys of [defaults] or of a tool with this backend."""
        tool = where == "tool"
        container = backend in ("oci", "gvisor")
        made = {
            "network": self.network(), "allow_host_network": self.maybe(), "filesystem": self.filesystem(),
            "system": self.maybe(), "timeout": self.duration(), "memory": self.size(),
            "cpu": self.random.choice([0.001, 0.5, 1, 2.25, 100000, "unlimited"]), "cpu_time": self.duration(),
            "pids": self.count(), "files": self.count(), "disk": self.size(), "output": self.size(),
            "syscalls": self.syscalls(), "commands": self.some(("git", "/usr/bin/../bin/python3", "a b", "caf\u00e9")),
            "env": {name: self.text() for name in self.some(("A", "_b2", "LONG_NAME", "lower"))},
            "env_pass": self.some(("LANG", "TERM")), "outputs": self.outputs(),
            "record": self.random.choice([True, False, "hash-only"]), "warm": self.random.randint(0, 5),
            "network_limits": self.network_limits(), "inspect": self.random.choice(["names", "strict"]),
            "redact": self.some(("/token", "/a/0/b", "/a~1b/~0", "/")), "approval": self.random.choice(["never", "ask"]),
            "approval_timeout": self.random.choice(["1ms", "90s", "1.5h"]),
        }
        if self.maybe(0.3):
            for key in ("network", "filesystem", "commands"):
                del made[key]
            made |= {"capabilities": self.some(("fs_read", "fs_write", "net_http", "exec_run")),
                     "allowed_paths": [self.entry(number) for number in range(self.random.randint(0, 3))],
                     "allowed_hosts": self.some(("a.example", "b.example:8080", "10.0.0.1", "[::1]:80", "*.c.example"), 5),
                     "allowed_commands": self.some(("git", "/bin/sh"))}
        if tool and self.maybe(0.2):
            made |= {"description": self.text(), "builtin": self.random.choice(BUILTINS)}
        elif tool:
            made |= {"description": self.text(), "command": self.command(), "parameters": self.schema(),
                     "returns": self.schema(), "mcp": self.mcp()}
        if container or not tool:
            made["container"] = self.container()
        if backend in ("oci", "gvisor", "microvm") or not tool:
            made["image"] = self.random.choice(["debian:12", "r.example:5000/a/b@sha256:00ff", "x"])
        elif backend == "jail":
            made["rootfs"] = self.path(0)
        keys = self.some(made, len(made))
        return {key: made[key] for key in keys}

    @staticmethod
    def drop_limits_of_host_network(policy):
        """Nothing can limit the host's network."""
        def drop(table, inherited):
            network = table.get("network", inherited)
            if network == "host":
                for key in ("network_limits", "inspect"):
                    table.pop(key, None)
            return network

        default = drop(policy.get("defaults", {}), "none")
        networks = {name: drop(table, default) for name, table in policy.get("tool", {}).items()}
        for agent in policy.get("agent", {}).values():
            for grant in agent.get("grants", []):
                if isinstance(grant, dict) and networks.get(grant["tool"]) == "host":
                    drop(grant, "host")

    def grant(self, tool):
        if self.maybe(0.3):
            return tool
        made = {"network": self.random.choice([False, self.network()]), "filesystem": self.filesystem(mapped=False),
                "timeout": self.duration(), "memory": self.size(), "cpu": 0.5, "pids": self.count(), "output": self.size(),
                "max_calls": self.random.choice([0, 1, 1000]), "network_limits": self.network_limits(),
                "inspect": self.random.choice(["names", "strict"]), "approval": self.random.choice(["never", "ask"]),
                "approval_timeout": "5s",
                "expires": self.random.choice(["2027-01-01", "2026-12-31T23:59:60Z", "2027-06-01T12:00:00+02:30"])}
        return {"tool": tool} | {key: made[key] for key in self.some(made, 5)}

    def policy(self):
        """As a tree of Python values."""
        policy = {"version": 1} if self.maybe(0.8) else {}
        default_backend = self.random.choice(list(BACKENDS))
        if self.maybe():
            policy["defaults"] = self.settings("defaults", default_backend)
            policy["defaults"][self.random.choice(["backend", "isolation"])] = self.random.choice(BACKENDS[default_backend])
        tools = {}
        for name in self.some(NAMES, 6):
            backend = self.random.choice(list(BACKENDS))
            tools[name] = self.settings("tool", backend)
            tools[name][self.random.choice(["backend", "isolation"])] = self.random.choice(BACKENDS[backend])
        agents = {}
        for name in self.some(NAMES, 3):
            agents[name] = {"grants": [self.grant(tool) for tool in self.some([*tools, "missing", "odd \u00e9"], 5)]}
            if self.maybe():
                agents[name]["description"] = self.text()
            if self.maybe(0.1):
                del agents[name]["grants"]
            if len(agents) > 1 and self.maybe(0.3):
                agents[name]["parent"] = next(iter(agents))
        policy |= ({"tool": tools} if tools else {}) | ({"agent": agents} if agents else {})
        self.drop_limits_of_host_network(policy)
        return policy or {"version": 1}

    # ---- as TOML, in varying spellings

    def toml_string(self, text):
        if self.maybe(0.3) and not any(c == "'" or ord(c) < 0x20 or ord(c) == 0x7f for c in text):
            return f"'{text}'"
        escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
        return '"' + "".join(escapes.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7f else c)
                             for c in text) + '"'

    def toml_key(self, key):
        bare = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
        return key if bare and self.maybe(0.8) else self.toml_string(key)

    def toml(self, value):
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return self.toml_string(value)
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.toml_key(key)} = {self.toml(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list):
            space = self.random.choice(["", " ", "\n  "])
            return "[" + ",".join(space + self.toml(item) for item in value) + "]"
        return repr(value)

    def toml_policy(self, policy):
        lines = [f"version = {policy['version']}"] if "version" in policy else []
        tables = [("defaults", policy["defaults"])] if "defaults" in policy else []
        tables += [(f"{kind}.{self.toml_key(name)}", table) for kind in ("tool", "agent")
                   for name, table in policy.get(kind, {}).items()]
        self.random.shuffle(tables)
        for header, table in tables:
            lines += ["", f"[{header}] # {self.random.randint(0, 9)}"]
            lines += [f"{self.toml_key(key)} = {self.toml(value)}" for key, value in table.items()]
        return "\n".join(lines) + "\n"


def random_policy(seed):
    """A policy as Python values and as TOML text."""
    generator = Generator(seed)
    policy = generator.policy()
    return policy, generator.toml_policy(policy)


# ---- the tests -----------------------------------------------------------------------------------

COMPILED = ("capabilities", "allowed_paths", "allowed_hosts", "allowed_commands")


def effective(toolcage, path):
    """All that holds, without where it comes from."""
    done = toolcage("explain", "--json", "--policy", path)
    assert (done.returncode, done.stderr) == (0, "")
    tools = json.loads(done.stdout)["tools"]
    return [{"name": tool["name"], "clauses": tool["clauses"], "agents": sorted(tool["agents"]),
             "settings": {key: setting["value"] for key, setting in tool["settings"].items() if key not in COMPILED}}
            for tool in tools]


def grants(policy):
    """What each agent may call, as far as it is written in one way only."""
    plain = ("max_calls", "pids", "cpu")

    def grant(value):
        table = {"tool": value} if isinstance(value, str) else value
        return {key: item if key in plain else None for key, item in table.items() if key != "tool"} | {"tool": table["tool"]}

    return {name: [grant(value) for value in agent.get("grants", [])] for name, agent in policy.get("agent", {}).items()}


def parents(policy):
    return {name: agent.get("parent") for name, agent in policy.get("agent", {}).items()}


def check_dump(toolcage, path, folder):
    """Dumps, loads the dump, dumps it: equal bytes and equal meaning."""
    first = toolcage("dump", path)
    assert (first.returncode, first.stderr) == (0, "")
    dumped = folder / "dumped.toml"
    dumped.write_bytes(first.stdout.encode())
    second = toolcage("dump", dumped)
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout == first.stdout
    assert effective(toolcage, dumped) == effective(toolcage, path)
    return first.stdout


def examples():
    from conftest import REPO
    return sorted(path for path in (REPO / "examples").iterdir() if path.suffix in (".toml", ".yaml", ".yml"))


def test_there_are_examples():
    assert len(examples()) >= 5


@pytest.mark.parametrize("path", examples(), ids=lambda path: path.name)
def test_example_is_dumped_to_a_fixpoint(toolcage, tmp_path, path):
    text = check_dump(toolcage, path, tmp_path)
    assert "[defaults]" not in text


@pytest.mark.parametrize("batch", range(10))
def test_random_policies_are_dumped_to_a_fixpoint(toolcage, tmp_path, batch):
    for seed in range(batch * 30, batch * 30 + 30):
        policy, text = random_policy(seed)
        path = tmp_path / "policy.toml"
        path.write_bytes(text.encode())
        try:
            dumped = tomllib.loads(check_dump(toolcage, path, tmp_path))
            named = {name: agent.get("description") for name, agent in policy.get("agent", {}).items()}
            assert named == {name: agent.get("description") for name, agent in dumped.get("agent", {}).items()}
            assert grants(dumped) == grants(policy)
            assert parents(dumped) == parents(policy)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}\n{text}") from error


def test_random_policies_use_every_key(build_dir, repo):
    """Otherwise the test above would say nothing about the missing ones."""
    used, in_defaults, in_grants = set(), set(), set()
    for seed in range(300):
        policy, _ = random_policy(seed)
        in_defaults |= set(policy.get("defaults", {}))
        for tool in policy.get("tool", {}).values():
            used |= set(tool)
        for agent in policy.get("agent", {}).values():
            for grant in agent.get("grants", []):
                in_grants |= set(grant) if isinstance(grant, dict) else set()
    defs = json.loads((repo / "schemas" / "policy.json").read_text(encoding="utf-8"))["$defs"]
    assert used == set(defs["tool"]["properties"])
    # A root directory in [defaults] would contradict an image there.
    assert in_defaults >= set(defs["defaults"]["properties"]) - {"rootfs"}
    assert in_grants >= set(defs["grant_table"]["properties"]) - {"cpu_time", "files", "disk"}


def test_dump_of_standard_input_is_the_same(toolcage, repo, tmp_path):
    path = repo / "examples" / "three-tools.toml"
    named = toolcage("dump", path)
    piped = toolcage("dump", "-", input=path.read_text(encoding="utf-8"), cwd=path.parent)
    assert (piped.returncode, piped.stdout) == (0, named.stdout)


def test_dump_does_not_depend_on_the_order_of_tables_or_keys(toolcage, tmp_path):
    (tmp_path / "a.toml").write_text('version = 1\n[defaults]\npids = 5\nmemory = "1MB"\n[tool.t]\ncpu = 2\nfiles = 3\n')
    (tmp_path / "b.toml").write_text('tool.t.files = 3\ntool.t.cpu = 2.0\nversion = 1\n'
                                     'defaults = { memory = "1000kB", pids = 5 }\n')
    assert toolcage("dump", tmp_path / "a.toml").stdout == toolcage("dump", tmp_path / "b.toml").stdout


def test_relative_paths_become_absolute(toolcage, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "p.toml").write_text('[tool.t]\nfilesystem = { readable = ["data", "../up"] }\n')
    for cwd, name in ((tmp_path, "sub/p.toml"), (tmp_path / "sub", "p.toml"), (tmp_path / "sub", "../sub//p.toml")):
        done = toolcage("dump", name, cwd=cwd)
        assert f'readable = ["{tmp_path}/sub/data", "{tmp_path}/up"]' in done.stdout, done.stderr
