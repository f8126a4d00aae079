# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts share. Sourcing it moves to the top of the source tree.
# Front-door scripts need bash and coreutils only: they run before anything is installed.

set -euo pipefail
unset CDPATH

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# VARIANT names one of the builds that the checks use besides the release build: see scripts/build.
if [ -n "${VARIANT:-}" ]; then
    BUILD=build-$VARIANT
fi
BUILD=${BUILD:-build}
export BUILD

# The system's Python, not one that happens to come first in PATH: the packages are installed there.
# shellcheck disable=SC2034  # used by those who source this
python=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1

# Meson and ninja do not know NO_COLOR, but they know a terminal that has no colours.
if [ -n "${NO_COLOR:-}" ]; then
    export TERM=dumb
fi
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'
else
    bold='' red='' plain=''
fi

say()
{
    printf '%s%s%s\n' "$bold" "$*" "$plain"
}

warn()
{
    printf '%s\n' "$*" >&2
}

die()
{
    printf '%s%s: %s%s\n' "$red" "${0##*/}" "$*" "$plain" >&2
    exit 1
}

# Shows a command as one would type it, then runs it.
show_and_run()
{
    printf '%s$' "$bold"
    printf ' %q' "$@"
    printf '%s\n' "$plain"
    "$@"
}

# A build directory that another account made fails in odd places: say it once, before anything runs.
require_writable()
{
    local dir=$1 alien
    if [ -e "$dir" ]; then
        alien=$(find "$dir" -xdev \( -type d -o -type f \) ! -writable -print -quit)
    else
        alien=$(find . -maxdepth 0 ! -writable -print -quit)
    fi
    [ -z "$alien" ] && return
    warn "$alien is not yours to write: it belongs to $(stat -c %U -- "$alien"), you are $(id -un)."
    warn "Use that account again, or remove $dir with it (make clean) and start over,"
    warn "or build somewhere else: make BUILD=/some/where."
    exit 1
}

# What root builds in somebody else's tree is given to the owner of the tree, so that `sudo make
# install` or a run in a container does not lock the owner out of the build directory.
give_back()
{
    [ "$(id -u)" = 0 ] && [ "$(stat -c %u .)" != 0 ] && [ -e "$1" ] || return 0
    chown -hR --reference=. -- "$1" 2>/dev/null || true
}
