# SPDX-License-Identifier: Apache-2.0
"""docs/lint.md is true: every finding has its section, and every example does what it is there for.

Below that, the findings that no example can show: files that cannot be read, or should not be.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "lint.md"

# What a policy's text cannot show; a command with its output stands there instead.
FILE_LEVEL = ("TC-P001", "TC-P002", "TC-P003", "TC-P004", "TC-L182", "TC-L183", "TC-L184")
# The example cannot be repeated at will, or is too large for a page (a unit test has it), or the policy loads (below).
NOT_REPEATABLE = ("TC-P004", "TC-L182", "TC-L183", "TC-L184")
# Lint must look at the host to see it.
HOST_LEVEL = ("TC-L170",)


class Section:
    """One `## TC-...: title` of the page."""

    def __init__(self, name, title, text):
        self.name = name
        self.title = title
        found = re.search(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
        self.severity = found[1] if found else None
        self.blocks = [(info, body) for info, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]

    def block(self, *infos):
        """The one block with one of these info strings."""
        found = [body for info, body in self.blocks if info in infos]
        assert len(found) == 1, f"{self.name} has {len(found)} blocks of {infos}"
        # A character that nobody could see in the page is written by its number.
        return re.sub(r"<U\+([0-9A-F]{4,6})>", lambda found: chr(int(found[1], 16)), found[0])


def read_sections():
    text = DOCUMENT.read_text(encoding="utf-8")
    heads = list(re.finditer(r"^## (TC-\w+): (.*)$", text, re.MULTILINE))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: Section(head[1], head[2], text[head.end():end]) for head, end in zip(heads, ends)}


SECTIONS = read_sections()
IN_POLICY = [name for name in SECTIONS if name not in FILE_LEVEL]
P_IDS = [name for name in IN_POLICY if name.startswith("TC-P")]
L_IDS = [name for name in IN_POLICY if name.startswith("TC-L")]


@pytest.fixture(scope="session")
def table(build_dir):
    """(id, severity, title) of each finding, from the table that the code is made from."""
    program = build_dir / "src" / "toolcage-reference"
    lines = subprocess.run([program, "findings"], capture_output=True, text=True, check=True, timeout=60).stdout
    return [tuple(line.split("\t")) for line in lines.splitlines()]


def write(folder, text, name="policy.toml"):
    """A file whose name has nothing to do with the finding."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def check_refused(done, path, name):
    """Nothing on stdout; on stderr each finding with its place and its remedy."""
    assert done.returncode == 125, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) % 2 == 0, done.stderr
    findings, remedies = lines[::2], lines[1::2]
    for line in findings:
        assert re.fullmatch(re.escape(str(path)) + r":[1-9]\d*:[1-9]\d*: error: .+ \[TC-P\d{3}\]", line), line
    for line in remedies:
        assert re.fullmatch(r"    remedy: .+", line), line
    assert any(line.endswith(f"[{name}]") for line in findings), done.stderr


# ---- the page ------------------------------------------------------------------------------------


def test_every_finding_has_a_section_and_every_section_a_finding(table):
    assert [name for name, _, _ in table] == list(SECTIONS)


def test_titles_and_severities_are_those_of_the_table(table):
    assert [(section.name, section.severity, section.title) for section in SECTIONS.values()] == table


def test_no_id_has_two_sections():
    heads = re.findall(r"^## (TC-\w+)", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(heads) == len(set(heads))


@pytest.mark.parametrize("name", SECTIONS)
def test_section_has_its_examples_and_no_others(name):
    infos = sorted(info for info, _ in SECTIONS[name].blocks)
    if name in FILE_LEVEL:
        assert infos == ["sh"]
    elif name in HOST_LEVEL:
        assert infos == ["toml bad host", "toml good"]
    else:
        assert infos == ["toml bad", "toml good"]


def test_links_lead_to_headings():
    text = DOCUMENT.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(#([^)]*)\)", text)
    assert links and [link for link in links if link not in anchors] == []


def test_page_holds_no_hidden_characters():
    """What the page warns of, it does not do."""
    assert re.findall("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", DOCUMENT.read_text(encoding="utf-8")) == []


def test_page_names_every_option_of_lint(toolcage):
    options = set(re.findall(r"--[a-z][a-z-]+", toolcage("lint", "--help").stdout)) - {"--help"}
    text = DOCUMENT.read_text(encoding="utf-8")
    assert options and [option for option in options if option not in text] == []


def test_files_that_the_page_names_exist(repo):
    names = set(re.findall(r"`((?:src|schemas)/[\w./]+)`", DOCUMENT.read_text(encoding="utf-8")))
    assert names and [name for name in names if not (repo / name).exists()] == []


# ---- examples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", P_IDS)
def test_bad_example_does_not_load(toolcage, tmp_path, name):
    path = write(tmp_path, SECTIONS[name].block("toml bad"))
    check_refused(toolcage("lint", path), path, name)
    # The other verbs refuse it with the same words.
    check_refused(toolcage("dump", path), path, name)


@pytest.mark.parametrize("name", P_IDS)
def test_bad_example_is_reported_as_a_document_on_stderr(toolcage, tmp_path, name):
    done = toolcage("lint", "--json", write(tmp_path, SECTIONS[name].block("toml bad")))
    assert (done.returncode, done.stdout) == (125, "")
    document = json.loads(done.stderr)
    assert name in [finding["id"] for finding in document["findings"]]
    assert all(finding["remedy"] and finding["line"] >= 1 for finding in document["findings"])


@pytest.mark.parametrize("name", P_IDS)
def test_good_example_loads(toolcage, tmp_path, name):
    path = write(tmp_path, SECTIONS[name].block("toml good"))
    done = toolcage("lint", "--no-host", path)
    assert done.returncode in (0, 1)
    assert done.stderr == ""
    assert "[TC-P" not in done.stdout
    assert toolcage("dump", path).returncode == 0


def lint_json(toolcage, path, *options):
    """The findings of a policy that loads; the exit code fits them."""
    done = toolcage("lint", "--json", *options, path)
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert done.returncode == (1 if document["errors"] else 0)
    return document["findings"]


@pytest.mark.parametrize("name", L_IDS)
def test_bad_example_has_its_finding(toolcage, tmp_path, name):
    section = SECTIONS[name]
    path = write(tmp_path, section.block("toml bad", "toml bad host"))
    findings = lint_json(toolcage, path, *([] if name in HOST_LEVEL else ["--no-host"]))
    own = [finding for finding in findings if finding["id"] == name]
    assert own, findings
    assert all(finding["severity"] == section.severity for finding in own)
    assert all(finding["message"] and finding["remedy"] and finding["line"] >= 1 for finding in own)


@pytest.mark.parametrize("name", [name for name in L_IDS if name not in HOST_LEVEL])
def test_bad_example_shows_one_mistake(toolcage, tmp_path, name):
    """A reader must not wonder which of several findings the section is about."""
    findings = lint_json(toolcage, write(tmp_path, SECTIONS[name].block("toml bad")), "--no-host")
    # A misspelt placeholder leaves its parameter unused.
    allowed = {"TC-L152": {"TC-L152", "TC-L153"}}.get(name, {name})
    assert {finding["id"] for finding in findings} <= allowed


@pytest.mark.parametrize("name", L_IDS)
def test_good_example_has_no_finding_at_all(toolcage, tmp_path, name):
    assert lint_json(toolcage, write(tmp_path, SECTIONS[name].block("toml good")), "--no-host") == []


def test_host_example_fails_for_the_reason_that_the_page_gives(toolcage, tmp_path):
    findings = lint_json(toolcage, write(tmp_path, SECTIONS["TC-L170"].block("toml bad host")))
    messages = [finding["message"] for finding in findings if finding["id"] == "TC-L170"]
    assert any("network_names" in message and '"process"' in message for message in messages)
    without_host = lint_json(toolcage, write(tmp_path, SECTIONS["TC-L170"].block("toml bad host")), "--no-host")
    assert without_host == []


@pytest.mark.parametrize("name", [name for name in FILE_LEVEL if name not in NOT_REPEATABLE])
def test_command_prints_what_the_page_shows(build_dir, clean_env, tmp_path, name):
    command, expected = SECTIONS[name].block("sh").split("\n", 1)
    assert command.startswith("$ ")
    path = f"{build_dir / 'src'}:{clean_env['PATH']}"
    done = subprocess.run(["sh", "-c", command[2:]], cwd=tmp_path, env=clean_env | {"PATH": path}, capture_output=True,
                          text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (125, "", expected)


def test_example_of_a_finding_is_what_lint_prints(toolcage, tmp_path):
    """The sample under "Reading a finding" is real."""
    sample = re.search(r"^## Reading a finding.*?^```text\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"),
                       re.MULTILINE | re.DOTALL)[1]
    write(tmp_path, "version = 1\n\n# Deploys.\n\n[defaults]\ntimeout = \"10s\"\n\n[tool.deploy]\n"
                    "filesystem = { writable = [\"/home/eve/.ssh\"] }\n[agent.a]\ngrants = [\"deploy\"]\n", "tools.toml")
    done = toolcage("lint", "--no-host", "tools.toml", cwd=tmp_path)
    assert done.stdout.startswith(sample)


# ---- files ---------------------------------------------------------------------------------------


@pytest.fixture
def public_folder():
    """A folder that other accounts can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="lint-docs-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


OWN = 'version = 1\ntools = "tools.d"\n[agent.a]\ngrants = ["t"]\n'


@pytest.fixture
def own_policy(tmp_path):
    """A policy with a tool file, all of it for this user alone."""
    folder = tmp_path / "agents"
    (folder / "tools.d").mkdir(parents=True)
    write(folder / "tools.d", 'command = ["true"]\n', "t.toml")
    path = write(folder, OWN)
    for each in (folder, folder / "tools.d", folder / "tools.d" / "t.toml", path):
        each.chmod(0o755 if each.is_dir() else 0o644)
    return path


def about_files(toolcage, path, *options):
    return [(finding["id"], finding["severity"]) for finding in lint_json(toolcage, path, *options)
            if finding["id"] in ("TC-L183", "TC-L184")]


@pytest.mark.parametrize("name", [".", "policy.toml", "tools.d", "tools.d/t.toml"])
def test_policy_that_others_can_change(toolcage, own_policy, name):
    assert about_files(toolcage, own_policy) == []
    path = own_policy.parent / name
    mode = path.stat().st_mode & 0o777
    path.chmod(mode | 0o020)
    assert about_files(toolcage, own_policy) == [("TC-L184", "warning")]
    path.chmod(mode | 0o022)
    assert about_files(toolcage, own_policy) == [("TC-L183", "error")]
    assert about_files(toolcage, own_policy, "--no-host") == []
    path.chmod(mode)
    if os.getuid() == 0:
        os.chown(path, 65534, -1)
        assert about_files(toolcage, own_policy) == [("TC-L183", "error")]


def test_policy_in_a_shared_directory(toolcage, own_policy):
    """As in /tmp: only the owner can replace the policy, but anybody could add a tool."""
    own_policy.parent.chmod(0o1777)
    assert about_files(toolcage, own_policy) == []
    (own_policy.parent / "tools.d").chmod(0o1777)
    assert about_files(toolcage, own_policy) == [("TC-L183", "error")]


@pytest.mark.parametrize("name", ["TC-L183", "TC-L184"])
def test_files_of_others_are_shown_as_the_page_shows_them(build_dir, clean_env, own_policy, name):
    command, expected = SECTIONS[name].block("sh").split("\n", 1)
    own_policy.write_text('version = 1\n[tool.t]\ncommand = ["true"]\n[agent.a]\ngrants = ["t"]\n', encoding="utf-8")
    path = f"{build_dir / 'src'}:{clean_env['PATH']}"
    done = subprocess.run(["sh", "-c", command[2:]], cwd=own_policy.parent, env=clean_env | {"PATH": path}, capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.stdout == expected.replace("/srv/agents", str(own_policy.parent))
    assert done.returncode == (1 if name == "TC-L183" else 0)


def test_missing_file(toolcage, tmp_path):
    path = tmp_path / "missing.toml"
    check_refused(toolcage("lint", path), path, "TC-P001")


def test_link_that_leads_nowhere_and_link_to_itself(toolcage, tmp_path):
    for name in ("nowhere.toml", "loop.toml"):
        path = tmp_path / name
        path.symlink_to(path if name == "loop.toml" else tmp_path / "gone")
        check_refused(toolcage("lint", path), path, "TC-P001")


def test_file_in_place_of_a_directory(toolcage, tmp_path):
    path = write(tmp_path, "version = 1\n") / "policy.toml"
    check_refused(toolcage("lint", path), path, "TC-P001")


def test_name_longer_than_any_file_has(toolcage):
    path = "/tmp/" + "x" * 300 + ".toml"
    check_refused(toolcage("lint", path), path, "TC-P001")


def test_unreadable_file(build_dir, clean_env, public_folder):
    """As an ordinary user: to root every file is readable."""
    path = write(public_folder, "version = 1\n[tool.a]\n")
    path.chmod(0)
    program = public_folder / "toolcage"
    shutil.copy(build_dir / "src" / "toolcage", program)
    program.chmod(0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    done = subprocess.run([*nobody, program, "lint", path], cwd="/", env=clean_env, capture_output=True, text=True, check=False,
                          timeout=60)
    check_refused(done, path, "TC-P001")
    assert "Permission denied" in done.stderr
    assert "chmod" in done.stderr


def test_directory(toolcage, tmp_path):
    check_refused(toolcage("lint", tmp_path), tmp_path, "TC-P002")


def test_pipe_is_not_waited_for(toolcage, tmp_path):
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    check_refused(toolcage("lint", path, timeout=20), path, "TC-P002")


def test_socket(toolcage, public_folder):
    path = public_folder / "socket.toml"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        check_refused(toolcage("lint", path, timeout=20), path, "TC-P001")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/full"])
def test_device(toolcage, path):
    check_refused(toolcage("lint", path, timeout=20), path, "TC-P002")


def test_sparse_file_of_200_megabytes(toolcage, tmp_path):
    path = tmp_path / "big.toml"
    with path.open("wb") as file:
        file.truncate(200 * 1000 * 1000)
    check_refused(toolcage("lint", path, timeout=20), path, "TC-P003")


def test_largest_file_that_is_read_and_the_first_that_is_not(toolcage, tmp_path):
    limit = 4 * 1024 * 1024
    text = "version = 1\n[tool.a]\n#"
    path = write(tmp_path, text + "x" * (limit - len(text)))
    assert toolcage("lint", "--no-host", path).returncode == 0
    path = write(tmp_path, text + "x" * (limit - len(text) + 1))
    check_refused(toolcage("lint", path), path, "TC-P003")


def test_endless_standard_input_is_refused(toolcage):
    with open("/dev/zero", "rb") as zero:
        done = toolcage("lint", "-p", "-", stdin=zero, timeout=20)
    check_refused(done, "-", "TC-P003")


def test_directory_as_standard_input(toolcage, tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        done = toolcage("lint", "-p", "-", stdin=handle)
    finally:
        os.close(handle)
    check_refused(done, "-", "TC-P002")


def test_policy_from_standard_input(toolcage):
    done = toolcage("lint", "--no-host", "-p", "-", input="version = 1\n[tool.a]\n[agent.b]\ngrants = [\"a\"]\n")
    assert (done.returncode, done.stdout) == (0, "-: 0 errors, 0 warnings, 0 notes\n")


@pytest.mark.parametrize("text", ["", " \n\t\n", "# only a comment\n", "\ufeff", "\r\n"])
@pytest.mark.parametrize("name", ["policy.toml", "policy.yaml"])
def test_empty_file(toolcage, tmp_path, text, name):
    if name.endswith("yaml") and "\t" in text:
        text = text.replace("\t", "")  # a tab is an error of its own in YAML
    path = write(tmp_path, text, name)
    check_refused(toolcage("lint", path), path, "TC-P006")


@pytest.mark.parametrize("name", ["policy.toml", "policy.yaml"])
def test_binary_garbage(toolcage, tmp_path, name, build_dir):
    program = (build_dir / "src" / "toolcage").read_bytes()
    samples = [bytes(range(256)), b"\0" * 1000, b"\xff\xfe" + "version = 1".encode("utf-16-le"), b"version = 1\n\xc3\x28\n",
               program[:100_000], b"\x1f\x8b\x08" + program[1000:2000]]
    for sample in samples:
        path = tmp_path / name
        path.write_bytes(sample)
        done = toolcage("lint", path)
        check_refused(done, path, "TC-P005")
        assert re.search(r"[^\n\x20-\x7e]", done.stderr) is None, "bytes of the file reach the terminal"


def test_file_that_changes_all_the_time(toolcage, tmp_path):
    """Whenever it is read: a policy that somebody wrote, or a refusal."""
    path = tmp_path / "policy.toml"
    tools = "".join(f"[tool.t{i}]\nmemory = \"128MB\"\nnetwork = [\"h{i}.example.com:443\"]\n" for i in range(300))
    texts = ["version = 1\n[tool.a]\n", "version = 1\n" + tools, "", "version = 1\n[tool.b]\n# " + "x" * 100_000 + "\n"]
    path.write_text(texts[0], encoding="utf-8")
    stop = threading.Event()

    def rewrite():
        turn = 0
        while not stop.is_set():
            text = texts[turn % len(texts)]
            with path.open("w", encoding="utf-8") as file:
                # In pieces, so that there are moments with half of it.
                for start in range(0, len(text), 4096):
                    file.write(text[start:start + 4096])
                    file.flush()
            with path.open("a", encoding="utf-8") as file:
                file.write("# more\n")
            turn += 1

    writer = threading.Thread(target=rewrite)
    writer.start()
    seen = set()
    try:
        for _ in range(60):
            done = toolcage("lint", "--no-host", "--json", path)
            if done.returncode == 125:
                assert done.stdout == ""
                findings = json.loads(done.stderr)["findings"]
                seen |= {finding["id"] for finding in findings}
            else:
                assert done.returncode == 0, (done.returncode, done.stderr)
                assert json.loads(done.stdout)["errors"] == 0
                seen.add("loaded")
    finally:
        stop.set()
        writer.join()
    # Half a text that ends between two lines is a whole text to any reader: it is no crash.
    assert seen <= {"loaded", "TC-P004", "TC-P005", "TC-P006"}, seen
