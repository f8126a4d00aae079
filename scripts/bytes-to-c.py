#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Writes a file as C source, NAME and NAME_size: bytes-to-c.py INPUT OUTPUT NAME. Used by the build."""

import sys
from pathlib import Path

source, target, name = sys.argv[1:]
data = Path(source).read_bytes()
lines = [", ".join(f"{byte:#04x}" for byte in data[at:at + 16]) for at in range(0, len(data), 16)]
Path(target).write_text(
    "/* Made by the build. */\n"
    f"extern const unsigned char {name}[];\nextern const unsigned long {name}_size;\n"
    f"const unsigned char {name}[{len(data)}] = {{\n    " + ",\n    ".join(lines) + "\n};\n"
    f"const unsigned long {name}_size = sizeof {name};\n", encoding="ascii")
