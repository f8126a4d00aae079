# SPDX-License-Identifier: Apache-2.0
"""Makes what the virtual machine boots: kernel, initial file system, and two ext4 images.

`base.ext4` is a small Debian: the files of the packages in scripts/vm/packages as this host has them,
and the kernel's modules. It is made again only when a package, the kernel, init or this file has changed.
`tree.ext4` holds the source tree and the build, and is made for each run. No root, no loop device and
no mirror is needed, but for the kernel's package, which is fetched once with apt.
"""

import collections
import functools
import hashlib
import lzma
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
KERNEL = "linux-image-cloud-amd64"
Kernel = collections.namedtuple("Kernel", "version image modules")
DRIVERS = ("virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk",
           "virtio_console")  # in this order

# What is inside them; the folders themselves are there.
LEFT_OUT = re.compile(r"/(usr/share/(doc|man|info|locale|lintian|bug|bash-completion|zsh|fish|icons|applications)|"
                      r"boot|var/cache|var/lib/apt|var/lib/dpkg)/")

# What packages make only when they are installed, and what adding an account leaves.
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
              "tester:x:1000:1000::/home/tester:/bin/bash\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\ndaemon:x:1:\ntty:x:5:\ntester:x:1000:\nnogroup:x:65534:\n",
    "shadow": "root:*:19000:0:99999:7:::\ntester:*:19000:0:99999:7:::\n",
    "gshadow": "root:*::\ntester:!::\n",
    "hosts": "127.0.0.1 localhost\n127.0.1.1 vm\n::1 localhost ip6-localhost ip6-loopback\n",
    "hostname": "vm\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
    "subuid": "tester:100000:65536\n",
    "subgid": "tester:100000:65536\n",
    "resolv.conf": "",
    "fstab": "",
}


class Problem(Exception):
    """Something that the user can read and act on."""


def run(*command, **options):
    """The command's output; Problem if it fails."""
    options.setdefault("stderr", subprocess.STDOUT)
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, errors="replace", check=False, **options)
    except OSError as error:
        raise Problem(f"{command[0]}: {error.strerror}; scripts/setup vm installs it") from error
    if done.returncode:
        raise Problem(f"{' '.join(map(str, command))} failed:\n{done.stdout.strip()}")
    return done.stdout


# ---- the kernel ----------------------------------------------------------------------------------


def fetch_kernel(folder):
    """The package with the kernel, from apt's sources. As root, stale lists are refreshed."""
    def download():
        depends = run("apt-cache", "depends", KERNEL)
        names = re.findall(r"Depends: (linux-image-\S+)", depends)
        if not names:
            raise Problem(f"{KERNEL} is not among apt's packages; VM_KERNEL=FILE.deb names one")
        # Without apt's own account, which may not write here.
        run("apt-get", "download", "-o", "APT::Sandbox::User=root", names[0], cwd=folder)

    try:
        download()
    except Problem:
        if os.geteuid() != 0:
            raise
        run("apt-get", "update")
        download()
    return next(folder.glob("*.deb"))


def prepare_kernel(work):
    """The kernel, unpacked below work/kernel if it is not there yet."""
    place, given = work / "kernel", os.environ.get("VM_KERNEL")
    source, stamp = os.path.realpath(given) if given else "apt", work / "kernel" / "source"
    if not stamp.exists() or stamp.read_text() != source:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        package = Path(given) if given else fetch_kernel(place)
        run("dpkg-deb", "-x", package, place)
        if not given:
            package.unlink()
        stamp.write_text(source)
    image = next(place.glob("boot/vmlinuz-*"), None)
    modules = next((found for folder in ("lib", "usr/lib") for found in place.glob(f"{folder}/modules/*")), None)
    if not image or not modules:
        raise Problem(f"{place}: there is no kernel, or no modules")
    return Kernel(modules.name, image, modules)


def make_initrd(target, kernel):
    """busybox, the drivers of the disks and ports, and scripts/vm/init."""
    root, busybox = target.with_suffix(".tmp"), shutil.which("busybox")
    if not busybox:
        raise Problem("there is no busybox; scripts/setup vm installs it")
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "dev", "proc", "sys", "root", "modules"):
        (root / name).mkdir(parents=True)
    shutil.copy2(busybox, root / "bin" / "busybox")
    shutil.copy2(HERE / "init", root / "init")
    order = ""
    for driver in DRIVERS:
        found = next(kernel.modules.rglob(f"{driver}.ko*"), None)
        if found:  # else it is built in
            code = found.read_bytes()
            (root / "modules" / driver).write_bytes(lzma.decompress(code) if found.suffix == ".xz" else code)
            order += f"{driver}\n"
    (root / "modules" / "order").write_text(order)
    names = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
    with target.open("wb") as file:
        subprocess.run([busybox, "cpio", "-o", "-H", "newc"], input=names.encode(), stdout=file,
                       stderr=subprocess.DEVNULL, cwd=root, check=True)
    shutil.rmtree(root)


# ---- a small Debian ------------------------------------------------------------------------------


@functools.cache
def installed_packages():
    """{name: (version, dependencies as a list of lists of alternatives)}, virtual names included."""
    text = run("dpkg-query", "-W", "-f", "${db:Status-Status}\t${Package}\t${Version}\t${Provides}\t"
               "${Pre-Depends}, ${Depends}\n")
    def bare(name):
        return re.sub(r"[:(].*", "", name).strip()
    packages, virtual = {}, {}
    for line in text.splitlines():
        status, name, version, provides, depends = line.split("\t")
        if status == "installed":
            packages[name] = name, version, [[bare(word) for word in group.split("|")]
                                             for group in depends.split(",") if group.strip()]
            virtual |= {bare(word): name for word in provides.split(",") if word.strip()}
    return packages | {name: packages[real] for name, real in virtual.items() if name not in packages}


def programs_in(build):
    """Everything in the build that the kernel can start."""
    for folder in ("src", "tests"):
        for path in sorted((build / folder).rglob("*")):
            if path.is_file() and os.access(path, os.X_OK):
                with path.open("rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def library_packages(build):
    """The packages with the shared libraries that the programs of the build load."""
    # Without a check: a static program has none, and ldd complains about it.
    listed = subprocess.run(["ldd", *programs_in(build)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False).stdout
    files = sorted({os.path.realpath(path) for path in re.findall(r"=> (/\S+)", listed)
                    if not path.startswith(str(build.resolve()))})
    if not files:
        raise Problem(f"the programs in {build} load no library")
    owners = {}
    for line in run("dpkg-query", "-S", *[f"*/{os.path.basename(path)}" for path in files]).splitlines():
        names, _, path = line.partition(": ")
        owners[os.path.realpath(path)] = names.split(",")[0].split(":")[0]
    missing = [path for path in files if path not in owners]
    if missing:
        raise Problem(f"no package owns {' '.join(missing)}")
    return {owners[path] for path in files}


def is_installed(name):
    """Is this package installed here, and so in the machine?"""
    return name in installed_packages()


def listed_packages():
    """What scripts/vm/packages and $VM_PACKAGES name: those that must be installed here, and those that may be
    ("? NAME")."""
    lines = [line for line in (HERE / "packages").read_text().splitlines() if line and not line.startswith("#")]
    optional = {line.removeprefix("? ") for line in lines if line.startswith("? ")}
    more = os.environ.get("VM_PACKAGES", "").split()
    return {line for line in lines if not line.startswith("? ")} | set(more), optional


def with_dependencies(roots, optional=()):
    """{name: version} of the packages and of everything that they depend on."""
    known, chosen = installed_packages(), {}
    todo = sorted(roots) + sorted(name for name in optional if name in known)
    if missing := [name for name in todo if name not in known]:
        raise Problem(f"not installed: {' '.join(missing)}; scripts/setup vm installs it")
    while todo:
        name, version, groups = known[todo.pop()]
        if name not in chosen:
            chosen[name] = version
            todo += [next(word for word in group if word in known) for group in groups
                     if any(word in known for word in group)]
    return chosen


def place_of(path):
    """Where a file really is: /bin/sh is /usr/bin/sh on a merged system."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def copy_one(source, root):
    """A file, link or folder of the host to the same place below root. What we may not read stays out."""
    target = root / source.lstrip("/")
    if os.path.islink(source):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink():
            target.symlink_to(os.readlink(source))
    elif os.path.isdir(source):
        target.mkdir(parents=True, exist_ok=True)
    elif os.path.isfile(source) and os.access(source, os.R_OK):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def copy_packages(names, root):
    """The files of the packages, Python's compiled ones, and the links of the alternatives system."""
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{name}"):
            copy_one(f"/{name}", root)
    listed = {place_of(path) for path in run("dpkg", "-L", *names).splitlines() if path.startswith("/")}
    files = sorted(path for path in listed if path != "/" and not LEFT_OUT.match(path))
    for path in files:
        copy_one(path, root)
        if path.endswith(".py"):
            folder, name = os.path.split(path)
            for compiled in Path(folder, "__pycache__").glob(f"{name[:-3]}.cpython-*.pyc"):
                copy_one(str(compiled), root)
    for name in ("lib32", "libx32"):  # links to nowhere unless a package uses them
        if not (root / "usr" / name).exists():
            (root / name).unlink(missing_ok=True)
    for folder in ("/usr/bin", "/usr/sbin"):
        for entry in os.scandir(folder):
            if entry.is_symlink() and os.path.realpath(entry.path) in listed:
                copy_one(entry.path, root)
                link = os.readlink(entry.path)
                if link.startswith("/etc/alternatives/"):
                    copy_one(link, root)


def fill_base(root, names, modules):
    copy_packages(names, root)
    for folder, mode in {"tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "home/tester": 0o755, "toolcage": 0o755,
                         "dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "etc": 0o755}.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder).chmod(mode)
    backups = {f"{name}-": ETC[name] for name in ("passwd", "group", "shadow", "gshadow")}
    for name, text in (ETC | backups).items():
        path = root / "etc" / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o600 if "shadow" in name else 0o644)
    shutil.copytree(modules, root / "usr" / "lib" / "modules" / modules.name, symlinks=True)
    # The kernel loads modules through this, as on any host.
    modprobe = root / "usr" / "sbin" / "modprobe"
    if not modprobe.exists():
        modprobe.symlink_to("/usr/bin/busybox" if (root / "usr/bin/busybox").exists() else "/bin/busybox")
    run("busybox", "depmod", "-b", root / "usr", modules.name)


def make_ext4(folder, target, room):
    """An image of the folder, owned by root, with `room` MB to spare."""
    used = sum(4096 + (path.lstat().st_size + 4095) // 4096 * 4096 for path in folder.rglob("*"))
    megabytes = used * 11 // 10 // (1 << 20) + room
    target.unlink(missing_ok=True)
    # fakeroot: whoever makes the image, its files belong to root.
    as_root = [] if os.geteuid() == 0 else ["fakeroot"]
    run(*as_root, "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,nodiscard", "-O",
        "^has_journal", "-d", folder, target, f"{megabytes}M")


def prepare_base(work, kernel, build):
    """work/base.ext4 and work/initrd.cpio; False if they were there already."""
    listed, optional = listed_packages()
    packages = with_dependencies(listed | library_packages(build), optional)
    described = "\n".join([kernel.version, Path(__file__).read_text(), (HERE / "init").read_text(),
                           *map(str, sorted(packages.items()))])
    digest = hashlib.sha256(described.encode()).hexdigest()
    stamp = work / "base.sha256"
    if stamp.exists() and stamp.read_text() == digest and (work / "base.ext4").exists():
        return False
    stamp.unlink(missing_ok=True)
    root = work / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    fill_base(root, packages, kernel.modules)
    make_ext4(root, work / "base.ext4", 512)
    shutil.rmtree(root)
    make_initrd(work / "initrd.cpio", kernel)
    stamp.write_text(digest)
    return True


# ---- the tree ------------------------------------------------------------------------------------


def shell_value(value):
    """As bash reads it; a list becomes an array."""
    return f"({shlex.join(value)})" if isinstance(value, list) else shlex.quote(str(value))


def prepare_tree(work, build, settings):
    """work/tree.ext4: the sources, the programs of the build, and what to run (.vm)."""
    root = work / "tree"
    shutil.rmtree(root, ignore_errors=True)

    def left_out(folder, names):
        top = [".git", "build*"] if Path(folder) == TREE else ["corpus"] if Path(folder).name == "fuzz" else []
        return shutil.ignore_patterns(*top, "__pycache__", "*.pyc")(folder, names)

    shutil.copytree(TREE, root, symlinks=True, ignore=left_out)
    # Programs and libraries; nobody links anything in the machine.
    shutil.copytree(build, root / "build", symlinks=True,
                    ignore=shutil.ignore_patterns("*.p", "*.o", "*.a", "meson-*", "ci-logs", "test-results",
                                                  ".ninja*", "*.ninja", "sanitizer-reports"))
    (root / ".vm").write_text("".join(f"{key}={shell_value(value)}\n" for key, value in settings.items()))
    make_ext4(root, work / "tree.ext4", 64)
    shutil.rmtree(root)
