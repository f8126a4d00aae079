# SPDX-License-Identifier: Apache-2.0
"""Adds up numbers: {"numbers": [1, 2.5]} on standard input gives {"sum": 3.5} on standard output."""

import json
import sys

numbers = json.loads(sys.stdin.read() or "{}").get("numbers", [])
print(json.dumps({"sum": sum(numbers), "count": len(numbers)}))
