#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Writes C source that has a file's bytes as NAME and their number as NAME_size: bytes-to-c.py INPUT OUTPUT NAME.

Used by the build. The assembler takes the file as it is: as numbers in C, a megabyte takes seconds to compile."""

import sys
from pathlib import Path

source, target, name = sys.argv[1:]
path = str(Path(source).resolve()).replace("\\", "\\\\").replace('"', '\\"')
Path(target).write_text(f"""/* Made by the build, from {Path(source).stat().st_size} bytes. */
__asm__(".section .rodata,\\"a\\",@progbits\\n"
        ".balign 64\\n"
        ".globl {name}\\n.hidden {name}\\n.type {name}, %object\\n"
        "{name}:\\n"
        ".incbin \\"{path.replace(chr(92), chr(92) * 2).replace('"', chr(92) + '"')}\\"\\n"
        ".L{name}_end:\\n"
        ".size {name}, .L{name}_end - {name}\\n"
        ".balign 8\\n"
        ".globl {name}_size\\n.hidden {name}_size\\n.type {name}_size, %object\\n"
        "{name}_size:\\n"
        ".quad .L{name}_end - {name}\\n"
        ".size {name}_size, 8\\n"
        ".previous\\n");
""", encoding="utf-8")
