# SPDX-License-Identifier: Apache-2.0
"""The table of escape attempts: how each is called, under which policy, and what a cage must make of it.

Every attempt is proven first: without a cage it works, as an ordinary user or, where it takes
privileges, as root (`proof`). In a cage it must be held: the program says so, and nothing on the
host has changed. An exception is written down with its reason and checked too: one that no longer
escapes has to go.

Arguments are filled in by the tests (native.py): {secret} a file of the caller, {token} the text in
it, {work} a writable directory, {data} a file that is granted for reading, and so on.
"""

from dataclasses import dataclass, field

# The policy of every attempt that does not say otherwise. Small, so that a limit is soon met.
GRANTS = {"readable": ["{bin}", "{datadir}"], "writable": ["{work}"], "cwd": "{work}"}


@dataclass(frozen=True)
class Attempt:
    name: str
    args: tuple = ()
    # "user": works for an ordinary user without a cage; "root": it takes privileges.
    proof: str = "user"
    # Why this kernel or this machine may not have it at all.
    may_be_absent: str = ""
    # Added to the `filesystem` table and to the tool's table of the policy.
    grants: dict = field(default_factory=dict)
    policy: dict = field(default_factory=dict)
    # Verdicts of a cage that held it; "failed" is the program's own word.
    verdicts: tuple = ("failed",)
    # Killed by the filter: a call of a foreign architecture.
    killed: bool = False
    # What the host looks at as well. "heartbeat": does somebody live on? "kept": how much output came?
    # "space": how much is on the disk? "watched": the same, for a sum that the kernel does not limit:
    # the tree is stopped a little later, and the verdict says so even if it has ended by itself.
    host: str = ""
    # How the caller starts it: letters of `escape-attempts --launch`, and "t" for a terminal.
    caller: str = "-"
    # {(backend, user) or backend: reason}: it is not held there, and why that is no secret.
    exceptions: dict = field(default_factory=dict)
    # {backend or (backend, user): reason}: the policy cannot be kept there, so that the cage is refused.
    refused: dict = field(default_factory=dict)

    def exception(self, cage, user):
        """Why it is not held; `cage` is a backend, or one with a profile: "process:default"."""
        return look_up(self.exceptions, cage, user)

    def refusal(self, cage, user):
        return look_up(self.refused, cage, user)


def look_up(reasons, cage, user):
    backend = cage.split(":")[0]
    for key in ((cage, user), cage, (backend, user), backend):
        if key in reasons:
            return reasons[key]
    return ""


def each(names, **options):
    """Attempts that differ in nothing but their names."""
    return [Attempt(name, **options) for name in names.split()]


NESTED = "Landlock rules only add: what lies in a granted directory cannot be taken away again"
METADATA = "Landlock does not hide that a file exists, nor its size"
NO_DISK_LIMIT = "it has no limit for the sum of what is written, and grants nothing for writing"
UNPRIVILEGED_BOUNDS = "who has no privileges cannot empty this set; no_new_privs makes it harmless"
MISSING = "what is not there cannot be covered, and could appear while the call runs"
FOR_DEBUGGERS = dict.fromkeys(("jail", "process:default"), "the default profile lets a debugger do this; it opens "
                              "nothing beyond the program itself")

READ = [
    *each("read-path read-proc-root read-dotdot read-proc-cwd read-chdir-up old-root", args=("{secret}",)),
    Attempt("read-proc-other", ("{secret}", "{victim}")),
    *each("read-own-symlink read-hard-link move-secret", args=("{secret}", "{work}")),
    Attempt("read-planted-symlink", ("{datadir}/link",)),
    Attempt("read-hidden", ("{datadir}/sub/hidden.txt",), grants={"hidden": ["{datadir}/sub/hidden.txt"]},
            refused={"process": NESTED}),
    Attempt("hidden-parent-rename", ("{work}/sub", "hidden.txt"), grants={"hidden": ["{work}/sub/hidden.txt"]},
            refused={"process": NESTED}),
    Attempt("stat-secret", ("{secret}",), exceptions={"process": METADATA}),
    Attempt("list-directory", ("{secretdir}",)),
    Attempt("leaked-fd-read", ("{fd_secret}",)),
    Attempt("leaked-directory-openat", ("{fd_directory}", "secret.txt")),
    Attempt("leaked-directory-fchdir", ("{fd_directory}", "secret.txt")),
    Attempt("leaked-any-fd"),
    Attempt("leaked-socket-write", ("{fd_socket}",)),
    Attempt("reopen-stdin", caller="f"),
    Attempt("reopen-stdout", caller="l"),
    Attempt("open-by-handle", ("{handle_type}", "{handle}", "{work}"), proof="root"),
    Attempt("double-chroot", ("{secret}", "{work}"), proof="root"),
]

WRITE = [
    *each("readonly-write readonly-truncate readonly-open-truncate readonly-unlink readonly-rename readonly-chmod "
          "readonly-fchmod readonly-utimes readonly-xattr readonly-mmap readonly-reopen", args=("{data}",)),
    Attempt("readonly-fchmodat2", ("{data}",), may_be_absent="since Linux 6.6"),
    Attempt("readonly-create", ("{datadir}",)),
    Attempt("readonly-fifo", ("{datadir}/fifo",)),
    Attempt("readonly-chown", ("{data}", "{other_id}"), proof="root"),
    Attempt("readonly-nested-write", ("{work}/ro/data.txt",), grants={"readable": ["{work}/ro"]}),
    Attempt("readonly-swap", ("{work}/ro",), grants={"readable": ["{work}/ro"]}),
    *each("protected-create protected-mkdir protected-symlink protected-rename", args=("{work}/missing",),
          grants={"hidden": ["{work}/missing"]}, refused={"process": NESTED, "jail": MISSING}),
    Attempt("write-system", ("/usr",), proof="root"),
    Attempt("write-path", ("{secret}",)),
    Attempt("overwrite-self"),
    Attempt("overwrite-parent"),
]

PLANT = [
    *each("plant-setuid-chmod plant-setgid-chmod plant-setuid-fchmod plant-setuid-fchmodat plant-setuid-open "
          "plant-setuid-creat plant-setuid-openat2 plant-setuid-tmpfile plant-setuid-mknod plant-setgid-directory",
          args=("{work}",)),
    Attempt("plant-setuid-fchmodat2", ("{work}",), may_be_absent="since Linux 6.6"),
    *each("plant-capability plant-device", args=("{work}",), proof="root"),
    Attempt("plant-chown", ("{work}", "{other_id}"), proof="root"),
    Attempt("run-setuid", ("{bin}/setuid-attempts",), may_be_absent="only root can make such a program"),
    Attempt("no-new-privs"),
]

MOUNT = [
    *each("mount-tmpfs umount-uncover fspick pivot-root", args=("{work}",)),
    Attempt("fsopen"),
    Attempt("mount-bind", ("{secretdir}", "{work}", "secret.txt")),
    *each("mount-proc mount-sysfs", args=("{work}",), proof="root"),
    *each("remount-writable mount-setattr-writable", args=("{datadir}",)),
    Attempt("open-tree-clone", ("{secretdir}", "secret.txt")),
    Attempt("move-mount", ("{secretdir}", "{work}")),
    Attempt("mountinfo-host", ("/sys/fs/cgroup", " /dev/pts ")),
]

DEVICE = [
    Attempt("mknod-disk", ("{work}", "{disk_major}", "{disk_minor}"), proof="root"),
    Attempt("open-disk", ("{disk}",), proof="root", may_be_absent="no disk is the root file system"),
    Attempt("open-kmsg", ("/dev/kmsg",), proof="root"),
    Attempt("open-kvm", ("/dev/kvm",), proof="root", may_be_absent="no KVM"),
    Attempt("open-fuse", ("/dev/fuse",), proof="root", may_be_absent="no FUSE"),
    Attempt("open-tun", ("/dev/net/tun",), proof="root", may_be_absent="no TUN"),
    Attempt("open-loop", ("/dev/loop-control",), proof="root", may_be_absent="no loop devices"),
    Attempt("open-console", ("/dev/tty1",), proof="root", may_be_absent="no virtual terminals"),
    Attempt("open-mem", ("/dev/mem",), proof="root", may_be_absent="a kernel without /dev/mem"),
    Attempt("list-devices", ("/dev/kmsg", "/dev/console", "/dev/tty1", "/dev/ttyS0", "/dev/vda"),
            exceptions={"process": METADATA}),
    Attempt("write-core-pattern", ("/proc/sys/kernel/core_pattern",), proof="root"),
    Attempt("write-sysctl", ("/proc/sys/kernel/threads-max",), proof="root"),
    Attempt("write-sysrq", ("/proc/sysrq-trigger",), proof="root", may_be_absent="a kernel without SysRq"),
    Attempt("write-uevent-helper", ("/sys/kernel/uevent_helper",), proof="root",
            may_be_absent="a kernel without an uevent helper"),
    Attempt("write-release-agent", ("{release_agent}",), proof="root", may_be_absent="no cgroup version 1"),
    Attempt("write-oom-score", ("/proc/{victim}/oom_score_adj",)),
    Attempt("read-kcore", ("/proc/kcore",), proof="root", may_be_absent="a kernel without /proc/kcore"),
    Attempt("leave-cgroup", ("{cgroup_procs}",)),
]

PROCESS = [
    Attempt("see-victim", ("{victim}",)),
    *each("read-victim-environ read-victim-cmdline", args=("{victim}", "{token}")),
    Attempt("read-parent-environ", ("{token}",)),
    *each("read-victim-memory write-victim-memory write-victim-mem-file", args=("{victim}", "{address}")),
    *each("open-parent-memory ptrace-parent ptrace-child pidfd-getfd-parent reopen-parent-fd"),
    *each("ptrace-victim pidfd-getfd-victim prlimit-victim renice-victim pin-victim reschedule-victim ionice-victim",
          args=("{victim}",)),
    Attempt("kcmp-victim", ("{victim}",), may_be_absent="a kernel without kcmp"),
    *each("signal-victim probe-victim signal-victim-tgkill signal-victim-tkill signal-victim-sigqueue "
          "signal-victim-pidfd signal-victim-owner", args=("{victim}",)),
    Attempt("signal-victim-proc", ("{victim}",)),
    *each("signal-group kill-parent stop-parent"),
    Attempt("signal-caller-group", ("{caller_group}",)),
    *each("outlive-daemon outlive-stdout outlive-sister outlive-runaway", args=("{work}/heartbeat",),
          host="heartbeat", verdicts=("failed", "ok")),
]

NAMESPACE = [
    *each("unshare-user clone-user clone3-user clone-high-bits"),
    Attempt("unshare-each", proof="root"),
    *each("setns-proc setns-pidfd", args=("{victim}",), proof="root"),
    Attempt("setns-leaked", ("{fd_namespace}",), proof="root"),
    *each("change-uid change-groups", args=("{other_id}",), proof="root"),
    Attempt("has-capabilities", proof="root"),
    Attempt("has-bounding-set", exceptions={
        ("process", "user"): UNPRIVILEGED_BOUNDS, ("process", "container"): UNPRIVILEGED_BOUNDS}),
    Attempt("personality-no-random", ("0x0040000",), exceptions=FOR_DEBUGGERS),
    Attempt("personality-exec-read", ("0x0400000",)),
    Attempt("personality-linux32", ("8",), exceptions=FOR_DEBUGGERS),
]

NETWORK = [
    *each("tcp4 tcp-mapped tcp-fast-open io-uring-connect", args=("{tcp4}",)),
    Attempt("tcp-multipath", ("{tcp4}",), may_be_absent="a kernel without multipath TCP"),
    Attempt("tcp6", ("{tcp6}",)),
    *each("udp4 dns-query", args=("{udp4}",)),
    Attempt("udp6", ("{udp6}",)),
    Attempt("unix-path", ("{secretdir}/stream.sock",)),
    Attempt("unix-path-granted", ("{work}/granted.sock",)),
    Attempt("unix-path-datagram", ("{secretdir}/datagram.sock",)),
    Attempt("unix-abstract", ("{abstract}",)),
    Attempt("unix-abstract-datagram", ("{abstract_datagram}",)),
    Attempt("listen", ("{listen}",)),
    *each("raw-ipv4 raw-ipv6 packet-socket", proof="root"),
    *each("netlink-audit netlink-netfilter", proof="root", may_be_absent="not in this kernel"),
    *each("vsock crypto-socket", may_be_absent="not in this kernel"),
    *each("netlink-uevent family-high-bits"),
    Attempt("odd-families", proof="root"),
    Attempt("netlink-sockets", ("{tcp4}",)),
    Attempt("io-uring-setup"),
    Attempt("io-uring-read", ("{secret}",)),
]

IPC = [
    *each("sysv-shm sysv-msg sysv-sem", args=("{ipc_key}",)),
    Attempt("posix-mqueue", ("{queue}",)),
    Attempt("dev-shm-file", ("{shm_name}",)),
    *each("keyring-search keyring-request keyring-list", args=("{key_name}",)),
    Attempt("keyring-add", ("{key_name}-planted",)),
]

KERNEL = [
    *each("bpf-map bpf-program swapon swapoff reboot settimeofday adjtimex kernel-log fanotify", proof="root"),
    *each("perf-event userfaultfd quotactl"),
    *each("kexec-load init-module delete-module", proof="root", may_be_absent="not in this kernel"),
    Attempt("modify-ldt", may_be_absent="not on this machine"),
    *each("iopl ioperm", proof="root", may_be_absent="not on this machine"),
    Attempt("sethostname", ("{hostname}",), proof="root"),
    Attempt("setdomainname", ("{domainname}",), proof="root"),
    *each("int80-read x32-read", args=("{secret}",), killed=True, may_be_absent="not in this kernel"),
    *each("int80-socket int80-getpid", killed=True, may_be_absent="not in this kernel"),
    *each("tiocsti tiocsti-high-bit tiocsti-high-bits", caller="t", may_be_absent="dev.tty.legacy_tiocsti is 0"),
    Attempt("open-terminal", caller="t"),
    Attempt("take-terminal", ("{terminal}",), caller="p"),
    Attempt("tioclinux", ("/dev/tty1",), proof="root", may_be_absent="no virtual terminals"),
    Attempt("tioclinux-call"),
]

INHERIT = [
    *each("env-secret env-memory", args=("{token}",)),
    Attempt("inherited-ignored", caller="i"),
    Attempt("inherited-blocked", caller="b"),
    Attempt("inherited-session", ("{caller_session}",)),
    Attempt("inherited-umask", caller="u"),
    Attempt("inherited-core"),
]

# The process backend grants nothing for reading then: the loader could start what can be read.
ONLY_SELF = {"commands": ["{bin}/escape-attempts"]}

EXEC = [
    *each("exec-other exec-memory exec-descriptor", args=("/usr/bin/echo",), policy=ONLY_SELF),
    Attempt("exec-loader", ("{loader}", "/usr/bin/echo"), policy=ONLY_SELF),
    Attempt("exec-loader-listed", ("{loader}", "/usr/bin/echo"),
            policy={"commands": ["{bin}/escape-attempts", "/usr/bin/cat"]}),
    *each("exec-script exec-copy exec-symlink", args=("{work}", "/usr/bin/echo"), policy=ONLY_SELF),
    Attempt("exec-hard-link", ("{work}", "{bin}/another"), policy=ONLY_SELF),
]

SMALL = {"memory": "32MB", "disk": "1GB", "pids": 32}
MEMORY_VERDICTS = ("memory", "failed", "signaled")

RESOURCE = [
    *each("memory-anonymous memory-heap memory-memfd memory-shared memory-sysv memory-page-tables memory-processes",
          args=("64",), policy=SMALL, verdicts=MEMORY_VERDICTS),
    *each("memory-pipes memory-sockets", args=("64",), policy=SMALL | {"files": 4096}, verdicts=MEMORY_VERDICTS,
          refused={("process", "container"): "only a control group counts what pipes hold"}),
    Attempt("memory-tmpfs", ("64", "{scratch}"), grants={"scratch": "128MB"}, policy=SMALL, verdicts=MEMORY_VERDICTS),
    Attempt("memory-shm", ("64", "/dev/shm"), grants={"scratch": "128MB"}, policy=SMALL, verdicts=MEMORY_VERDICTS),
    Attempt("memory-inodes", ("60000", "{scratch}"), grants={"scratch": "128MB"}, policy=SMALL,
            verdicts=MEMORY_VERDICTS),
    Attempt("fork-bomb", ("64",), policy={"pids": 16}, verdicts=("pids", "failed")),
    Attempt("thread-bomb", ("64",), policy={"pids": 16}, verdicts=("pids", "failed")),
    Attempt("cpu-burn", ("1000",), policy={"cpu_time": "300ms"}, verdicts=("cpu",)),
    Attempt("cpu-burn-many", ("150", "6"), policy={"cpu_time": "300ms"}, verdicts=("cpu", "failed")),
    Attempt("open-files", ("200",), policy={"files": 64}),
    Attempt("raise-limit", proof="root", may_be_absent="root without CAP_SYS_RESOURCE"),
    *each("flood-stdout flood-stderr flood-both", args=("4",), policy={"output": "1MB"}, host="kept",
          verdicts=("output",)),
    Attempt("sleep-long", ("1200",), policy={"timeout": "400ms"}, verdicts=("timeout",)),
    *each("disk-one-file disk-fallocate disk-fallocate-hidden disk-unlinked disk-sparse", args=("{work}", "24"),
          policy={"disk": "8MB"}, host="space", verdicts=("disk", "failed")),
    Attempt("disk-many-files", ("{work}", "160"), policy={"disk": "8MB"}, host="watched", verdicts=("disk", "failed")),
    *each("disk-mapping disk-copy", args=("{work}", "24"), policy={"disk": "8MB"}, host="watched",
          verdicts=("disk", "failed")),
    Attempt("disk-tiny-files", ("{work}", "3000"), policy={"disk": "8MB"}, host="watched", verdicts=("disk", "failed")),
    Attempt("disk-several-mounts", ("6", "{work}", "{other}", "{third}"), policy={"disk": "8MB"},
            grants={"writable": ["{other}", "{third}"]}, host="watched", verdicts=("disk", "failed")),
    Attempt("scratch-fill", ("{scratch}", "24"), grants={"scratch": "8MB"}),
]

ATTEMPTS = [*READ, *WRITE, *PLANT, *MOUNT, *DEVICE, *PROCESS, *NAMESPACE, *NETWORK, *IPC, *KERNEL, *INHERIT, *EXEC,
            *RESOURCE]

# One of each kind, for machines on which all of them would take too long.
ESSENTIAL = set("""
    read-path read-proc-root read-proc-other read-dotdot read-own-symlink read-planted-symlink read-hidden move-secret
    hidden-parent-rename leaked-any-fd leaked-socket-write reopen-stdin open-by-handle double-chroot readonly-write
    readonly-truncate readonly-chmod readonly-fchmod readonly-reopen readonly-fifo readonly-swap write-path
    overwrite-self overwrite-parent plant-setuid-chmod plant-setuid-openat2 plant-setuid-tmpfile plant-chown run-setuid
    mount-bind remount-writable mount-setattr-writable umount-uncover open-tree-clone mknod-disk write-core-pattern
    leave-cgroup read-victim-environ write-victim-mem-file ptrace-parent pidfd-getfd-victim prlimit-victim signal-victim
    signal-victim-owner signal-group kill-parent outlive-daemon outlive-sister unshare-user clone3-user setns-proc
    change-uid has-capabilities tcp4 tcp6 tcp-fast-open udp4 unix-path-granted unix-abstract listen netlink-sockets
    odd-families io-uring-read io-uring-connect sysv-shm posix-mqueue dev-shm-file keyring-search keyring-list bpf-map
    userfaultfd init-module kexec-load sethostname int80-read x32-read tiocsti-high-bit open-terminal env-secret
    read-parent-environ inherited-ignored exec-other exec-loader-listed exec-script exec-memory memory-anonymous
    memory-tmpfs memory-pipes memory-page-tables memory-processes fork-bomb cpu-burn-many open-files flood-both
    sleep-long disk-one-file disk-fallocate-hidden disk-several-mounts scratch-fill""".split())

# What the policy grants works, in every cage: otherwise "held" would mean nothing.
CONTROLS = [
    Attempt("control-read", ("{data}",)),
    Attempt("control-write", ("{work}/made-in-the-cage",), exceptions={"process": NO_DISK_LIMIT,
                                                                       "process:default": NO_DISK_LIMIT}),
    Attempt("control-fork", exceptions={"process": "the profile is \"pure\": it starts no process",
                                        "process:default": ""}),
    Attempt("control-stdin", caller="f"),
]

# In the program, but not attempts of their own: see there.
HELPERS = {"am-i", "fork-storm", "control-escape", "outlive-deaf", "outlive-many", "outlive-stopped"}
