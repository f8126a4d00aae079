# SPDX-License-Identifier: Apache-2.0
"""One virtual machine: starts QEMU, waits for its end or its time limit, leaves nothing running."""

import ctypes
import os
import shutil
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1

# The plain PC, not `microvm`: with a HPET the guest's clock is right on a busy host, where the smaller
# machine counts ticks, loses them, and may hang at boot.
MACHINE = "pc,hpet=on"
# The guest's mitigations cost much here and protect nothing.
EMULATED = "mitigations=off"
# Docker starts no container where the kernel has AppArmor and its parser is not installed.
WITHOUT_APPARMOR = "apparmor=0"


def die_with_parent():
    """In QEMU's process before it starts: whatever ends us ends it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Machine:
    """QEMU with the images in `work`; its logs are work/NAME.{console,output,qemu}.log."""

    def __init__(self, work, name, accelerator, kernel):
        self.work, self.name, self.accelerator, self.kernel = work, name, accelerator, kernel
        self.console, self.output = work / f"{name}.console.log", work / f"{name}.output.log"
        self.results, self.messages = work / f"{name}.results.tar", work / f"{name}.qemu.log"
        self.scratch = work / f"{name}.tmp"
        self.process, self.started, self.seconds, self.problem = None, 0, 0, None

    def command(self):
        emulated = self.accelerator == "tcg"
        words = ["qemu-system-x86_64", "-M", MACHINE, "-smp", "2", "-m", "1536",
                 "-accel", "tcg,thread=multi,tb-size=256" if emulated else self.accelerator,
                 # Wide vectors are slow when they are emulated.
                 "-cpu", "max,-avx,-avx2" if emulated else "host",
                 "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                 "-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console",
                 "-kernel", str(self.kernel), "-initrd", str(self.work / "initrd.cpio"),
                 "-append", f"console=ttyS0 quiet reboot=t panic=-1 toolcage.round={self.name} "
                            f"{EMULATED if emulated else ''} "
                            f"{'' if shutil.which('apparmor_parser', path='/usr/sbin:/sbin') else WITHOUT_APPARMOR}"]
        for index, image in enumerate(("base.ext4", "tree.ext4")):
            # snapshot: what the guest writes goes to a file in TMPDIR that is gone afterwards.
            words += ["-drive", f"id=disk{index},file={self.work / image},format=raw,if=none,snapshot=on,cache=unsafe",
                      "-device", f"virtio-blk-pci,drive=disk{index}"]
        words += ["-device", "virtio-serial-pci"]
        for port, path in (("output", self.output), ("results", self.results)):
            words += ["-chardev", f"file,id={port},path={path}",
                      "-device", f"virtserialport,chardev={port},name={port}"]
        return words

    def start(self):
        for path in (self.console, self.output, self.results):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        self.started = time.monotonic()
        with self.messages.open("wb") as messages:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=messages, stderr=subprocess.STDOUT,
                env=os.environ | {"TMPDIR": str(self.scratch)}, preexec_fn=die_with_parent)

    def wait(self, deadline):
        """Until the machine has ended itself; after the deadline it is killed."""
        try:
            status = self.process.wait(max(0, deadline - time.monotonic()))
            self.problem = f"QEMU ended with status {status}" if status else None
        except subprocess.TimeoutExpired:
            self.problem = "not finished in time"
        self.stop()
        self.seconds = time.monotonic() - self.started

    def stop(self):
        """Harmless when repeated."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)
