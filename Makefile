# SPDX-License-Identifier: Apache-2.0
# The front door: every target calls one script; the build itself is Meson's (meson.build).
#
# Variables, on the command line or in the environment:
#   BUILD         where to build (build)
#   PREFIX        where to install (/usr/local), DESTDIR: a staging root in front of it
#   MESON_FLAGS   more options for `meson setup`, the first time
#   FUZZ_SECONDS  how long to fuzz each target (60)
#   VM_ACCEL      kvm: do not emulate the processor in check-vm (tcg)
#   SETUP=skip    do not look for missing packages

.DEFAULT_GOAL := all
.NOTPARALLEL:
.SUFFIXES:

# Handed over in the environment, so that a space in a value needs no quoting anywhere.
export BUILD PREFIX DESTDIR MESON_FLAGS FUZZ_SECONDS SETUP VM_ACCEL

.PHONY: all help try check soak check-vm install uninstall sanitize fuzz bench static format layers generate setup clean

all: ## build (release), into build/
	@scripts/setup --report build
	@scripts/build

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

try: ## install what is missing, build, and show the main job on examples/
	@scripts/setup build
	@scripts/build
	@scripts/try

check: ## install what is missing, build, and run all tests
	@scripts/setup check
	@scripts/check

soak: ## 20,000 calls, 8 at a time, with random kills; then nothing may be left
	@scripts/setup check
	@scripts/build
	@TOOLCAGE_SOAK=$${TOOLCAGE_SOAK:-20000} /usr/bin/python3 -B tests/e2e/soak.py

check-vm: ## the tests of the cages again, on another kernel, in virtual machines
	@scripts/setup check-vm
	@scripts/check-vm

install: all ## install below PREFIX (/usr/local); DESTDIR is respected
	@scripts/install

uninstall: ## remove what the last `make install` put in place
	@scripts/install --remove

sanitize: ## all tests again, with the address and undefined-behaviour sanitizers
	@scripts/setup sanitize
	@scripts/sanitize

fuzz: ## replay the seeds, then fuzz each target for FUZZ_SECONDS (60)
	@scripts/setup fuzz
	@scripts/fuzz

bench: ## run the benchmarks
	@scripts/setup build
	@scripts/build
	@scripts/bench

static: ## clang-tidy, cppcheck, clang-format, shellcheck, and the layer check
	@scripts/setup static
	@scripts/static-checks

format: ## lay out the C sources with clang-format
	@scripts/setup static
	@scripts/static-checks --format

layers: ## who may include whom
	@scripts/layer-check

generate: all ## regenerate docs and schemas from the tables in the source
	@scripts/generate

setup: ## install every package that any target needs
	@scripts/setup all

clean: ## remove all build directories
	@scripts/clean
