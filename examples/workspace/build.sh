#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A stand-in for a build: shows where it runs, and what it is given.
set -eu
echo "in $(pwd), as user $(id -u), with:"
ls
if touch new 2>/dev/null; then
    echo "the workspace can be changed"
else
    echo "the workspace cannot be changed"
fi
