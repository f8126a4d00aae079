# SPDX-License-Identifier: Apache-2.0
"""The gate and programs that nobody here wrote: each reaches an allowed name as if there were no gate, and fails
fast and clearly for what is refused. No proxy variable is set, no program knows of a cage."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from gate_lab import PYTHON, TIME_SCALE, cage, mark, names, need, no_cage, one_cage, world  # noqa: F401
from native import SLOW

pytestmark = pytest.mark.skipif(SLOW, reason="says nothing about other kernels or about memory, and takes long")

FAST = 1.0  # seconds until a refusal has reached the program's user

ASYNCIO = """\
import asyncio, ssl
async def main():
    reader, writer = await asyncio.open_connection({host!r}, {port}, ssl=ssl.create_default_context(cafile={ca!r}),
                                                   happy_eyeballs_delay=0.25)
    writer.write(b"GET /hello HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n")
    print((await reader.read()).decode())
asyncio.run(main())
"""
URLLIB = """\
import urllib.request
print(urllib.request.urlopen('http://{address}:{port}/hello', timeout=10).read().decode())
"""
NODE = ("fetch('{scheme}://{address}:{port}/hello').then(answer => answer.text()).then(text => console.log(text))"
        ".catch(error => {{ console.error(error.cause); process.exit(1); }})")
GO = """\
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	connection, err := net.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(connection, "GET /hello HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n", os.Args[1])
	io.Copy(os.Stdout, connection)
}
"""


@dataclass
class Client:
    """`words` with {host}, {address} (with brackets if it takes them), {port}, {ca} and {public} filled in."""

    name: str
    words: tuple
    port: int = 80
    good: str = r"hello from {host}"
    # What it says of a name that does not exist, and of a port at which nobody listens.
    no_name: str = "Could not resolve host"
    refused: str = "(?i)refused|couldn't connect|connect call failed"
    needs: str = ""
    status: int = 0

    def command(self, world, host, port=None):
        values = {"host": host, "address": f"[{host}]" if ":" in host else host, "port": port or self.port,
                  "ca": str(world.public / "ca.pem"), "public": str(world.public),
                  "scheme": "https" if self.port == 443 else "http"}
        return [word.format(**values) for word in self.words]


CURL = ("curl", "-sS", "-m", "10", "--cacert", "{ca}")
CLIENTS = [
    Client("curl", (*CURL, "{scheme}://{address}:{port}/hello")),
    Client("curl-tls", (*CURL, "{scheme}://{address}:{port}/hello"), 443),
    Client("curl-4", (*CURL, "-4", "{scheme}://{address}:{port}/hello")),
    Client("curl-6", (*CURL, "-6", "{scheme}://{address}:{port}/hello")),
    Client("wget", ("wget", "-nv", "-t", "1", "-T", "10", "-O", "-", "http://{address}:{port}/hello"),
           no_name="unable to resolve host address"),
    Client("urllib", (*PYTHON, URLLIB), no_name="Name or service not known"),
    Client("asyncio", (*PYTHON, ASYNCIO), 443, no_name="Name or service not known"),
    Client("node", ("node", "-e", NODE), no_name="ENOTFOUND"),
    Client("node-tls", ("env", "NODE_EXTRA_CA_CERTS={ca}", "node", "-e", NODE), 443, no_name="ENOTFOUND", needs="node"),
    Client("git", ("sh", "-c", "rm -rf $TMPDIR/clone; "
                   "git clone -q http://{address}:{port}/repository.git $TMPDIR/clone && cat $TMPDIR/clone/file.txt"),
           good="from the repository", needs="git"),
    Client("ssh", ("ssh", "-v", "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
                   "ConnectTimeout=10", "-p", "{port}", "{host}"), 22, "remote software version OpenSSH_of_the_lab",
           "Could not resolve hostname", status=255),
    Client("openssl", ("openssl", "s_client", "-brief", "-connect", "{address}:{port}", "-servername", "{host}",
                       "-CAfile", "{ca}", "-verify_return_error"), 443, "Verification: OK",
           "Name or service not known|BIO_lookup"),
    Client("busybox-wget", ("busybox", "wget", "-q", "-O", "-", "http://{address}:{port}/hello"),
           no_name="bad address"),
    Client("busybox-nc", ("sh", "-c", "echo ping | busybox nc {host} {port}"), 7000, "ping", "bad address",
           needs="busybox"),
    Client("static-4", ("{public}/static-client", "get", "4", "{host}", "{port}"), no_name="code: ENOENT"),
    Client("static-6", ("{public}/static-client", "get", "6", "{host}", "{port}"), no_name="code: ENOENT"),
    Client("go", ("{public}/go-client", "{host}", "{port}"), no_name="no such host"),
]
ONLY_6 = ("curl-6", "static-6")
ONLY_4 = ("curl-4", "static-4")


@pytest.fixture(scope="module")
def go_client(world):
    """A static program with a resolver of its own; where there is a compiler."""
    go = shutil.which("go")
    if not go:
        pytest.skip("there is no Go compiler here; none is needed otherwise")
    source = world.base / "etc" / "client.go"
    source.write_text(GO)
    # With the compiler's own cache: its library takes a quarter of a minute, once.
    subprocess.run([go, "build", "-o", world.public / "go-client", source], check=True, timeout=300 * TIME_SCALE,
                   env=os.environ | {"CGO_ENABLED": "0", "GO111MODULE": "off"})
    return True


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request, world):
    chosen = request.param
    if chosen.name == "go":
        request.getfixturevalue("go_client")
    elif "{public}" not in chosen.words[0]:
        need(chosen.needs or chosen.words[0])
    return chosen


def check_good(client, outcome, host):
    assert outcome.status == client.status, outcome
    assert re.search(client.good.format(host=re.escape(host)), outcome.stdout + outcome.stderr), outcome


def check_refused(client, run, pattern):
    """Clearly, and within a second: of three, because other programs run on this machine too."""
    seconds = []
    for _ in range(3):
        outcome = run()
        assert outcome.status != 0 and re.search(pattern, outcome.stdout + outcome.stderr), outcome
        seconds.append(outcome.seconds)
        if seconds[-1] < FAST * TIME_SCALE:
            return outcome
    raise AssertionError(f"it took {seconds} seconds until {client.name} knew")


# ---- without a gate: the lab and the clients --------------------------------------------------------


@pytest.mark.parametrize("host", ["allowed.test", "refused.test"])
def test_client_works_without_a_cage(no_cage, world, client, host):
    """Both hosts are there for everybody: only a gate can refuse one of them."""
    if client.name == "ssh":
        pytest.skip("wants an account of the host's; seen in a cage")
    words = ["env", f"TMPDIR={world.base / 'scratch'}", *client.command(world, host)]
    (world.base / "scratch").mkdir(exist_ok=True)
    (world.base / "scratch").chmod(0o777)
    check_good(client, no_cage.bare(*words), host)


# ---- in a cage -------------------------------------------------------------------------------------


def test_client_reaches_an_allowed_name(cage, world, client):
    outcome = cage.run([f"allowed.test:{client.port}"], *client.command(world, "allowed.test"))
    check_good(client, outcome, "allowed.test")
    assert outcome.denials() == {}
    assert {entry["port"] for entry in outcome.connections("allowed.test")} == {client.port}


@pytest.mark.parametrize("host, address", [("v4.test", names.SERVER), ("v6.test", names.SERVER6)])
def test_client_reaches_a_name_with_one_family(one_cage, world, client, host, address):
    """The program may use either family; the gate dials the one that there is."""
    outcome = one_cage.run([f"{host}:{client.port}"], *client.command(world, host))
    check_good(client, outcome, host)
    assert {entry["address"] for entry in outcome.connections(host)} == {address}


def test_client_is_told_at_once_that_a_name_is_refused(cage, world, client, mark):
    outcome = check_refused(client, lambda: cage.run([f"allowed.test:{client.port}"],
                                                     *client.command(world, "refused.test")), client.no_name)
    assert any(target.split(":")[0] == "refused.test" for target in outcome.denials())
    assert not [entry for entry in world.log(mark, "question") if "refused" in entry["name"]]
    assert not [entry for entry in world.log(mark, "open") if entry["to"] in (names.OTHER, names.OTHER6)]


def test_client_is_told_at_once_that_a_port_is_refused(one_cage, world, client, mark):
    outcome = check_refused(client, lambda: one_cage.run([f"allowed.test:{client.port}"],
                                                         *client.command(world, "allowed.test", 8080)), client.refused)
    assert "allowed.test:8080" in outcome.denials()
    assert not [entry for entry in world.log(mark, "open") if entry["port"] == 8080]


@pytest.mark.parametrize("host", [names.OTHER, names.OTHER6])
def test_client_is_told_at_once_that_an_address_is_refused(one_cage, world, client, host, mark):
    if client.name in (("wget", "busybox-wget", "git", *ONLY_4) if ":" in host else ONLY_6):
        pytest.skip("has no way to write such an address")
    check_refused(client, lambda: one_cage.run([f"allowed.test:{client.port}"], *client.command(world, host)),
                  client.refused)
    assert not [entry for entry in world.log(mark, "open") if entry["to"] == host]


def test_no_proxy_is_announced(one_cage):
    outcome = one_cage.run(["allowed.test:80"], "env")
    assert "proxy" not in outcome.stdout.lower() and "allowed" not in outcome.stdout
