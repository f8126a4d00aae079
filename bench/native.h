/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the parts of bench_native share. A subject is one row of the table: a way to run one
 * command, or to measure one thing about it. A part prepares its subjects once, outside the clock.
 */
#ifndef BENCH_NATIVE_H
#define BENCH_NATIVE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "toolcage/toolcage.h"

enum { BENCH_NOTE_MAX = 320, BENCH_WORDS_MAX = 128, BENCH_LIMIT_MS = 60000 };

struct bench {
    struct tci_arena *arena; /* texts that live as long as the run */
    const char *directory;   /* for everything that is made; removed at the end */
    const char *true_path;   /* the same static program for every subject */
    const char *sleeper_path;
    const char *built_true_path; /* the same program where it was built */
    const char *toolcage;        /* the command line tool of this build */
    const char *python;          /* NULL: there is none */
    struct tc_engine *engine;    /* opened once, when the first subject needs it */
    char layers[200];            /* of the first call in a jail */
    unsigned threads;
};

/* A program outside, with its words. */
struct bench_command {
    const char *words[BENCH_WORDS_MAX];
    unsigned count;
    const char *descriptor_10; /* a file that the program finds open there; NULL: none */
    int mounts;                /* a mount namespace to start it in; -1: our own */
};

struct bench_subject {
    const char *id, *group, *text;
    /* 0, or -1 with `note`: what is missing, or what went wrong. */
    int (*prepare)(struct bench *bench, struct bench_subject *subject);
    int (*run)(struct bench *bench, struct bench_subject *subject, double *ret_value);
    void (*finish)(struct bench *bench, struct bench_subject *subject);
    const char *argument; /* what tells subjects with the same functions apart */
    unsigned period;      /* runs in one round of so many; 0 is 1 */
    const char *unit;     /* NULL: "ms" */
    /* made by prepare */
    bool ready;
    struct bench_command *command;
    char note[BENCH_NOTE_MAX];
};

extern struct bench_subject bench_subjects[]; /* subjects.c */
extern const unsigned bench_subject_count;

/* ---- place.c */

_Noreturn void bench_die(const char *what);
void bench_open(struct bench *bench);
void bench_close(struct bench *bench);
double bench_now_ms(void);
/* Sorts them. */
double bench_median(double *values, size_t count);
/* Sets the note; returns -1. */
int bench_fail(struct bench_subject *subject, const char *format, ...) tci_printf_like(2, 3);
/* One call, which must end well. */
int bench_call(struct tc_engine *engine, struct bench_subject *subject,
               const struct tc_request *request);
/* Texts in the arena; the program ends when memory does. */
char *bench_text(struct bench *bench, const char *format, ...) tci_printf_like(2, 3);
/* A file below the directory; folders on the way are made. Returns its path. */
const char *bench_file(struct bench *bench, const char *name, const char *text);

/* ---- command.c */

/* The path of an installed program, or NULL. */
const char *bench_find(struct bench *bench, const char *program);
struct bench_command *bench_command_new(struct bench *bench);
void bench_command_add(struct bench_command *command, ...) __attribute__((sentinel));
/* Runs it to its end, at most BENCH_LIMIT_MS. -1 with the note: it failed, and its last words. */
int bench_command_try(struct bench *bench, struct bench_command *command,
                      struct bench_subject *subject);
/* prepare and run of a subject that has a command. */
int bench_command_run(struct bench *bench, struct bench_subject *subject, double *ret_value);

/* ---- floors.c: without a cage */

int bench_spawn(struct bench *bench, struct bench_subject *subject);
int bench_namespaces(struct bench *bench, struct bench_subject *subject);
int bench_fork(struct bench *bench, struct bench_subject *subject);
int bench_spawn_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_namespaces_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_python_prepare(struct bench *bench, struct bench_subject *subject);

/* ---- cage.c: through the library and the command line; `argument` is a tool of the policy */

int bench_cage_prepare(struct bench *bench, struct bench_subject *subject);
int bench_cage_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_cage_python_prepare(struct bench *bench, struct bench_subject *subject);
int bench_cage_python_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_cli_prepare(struct bench *bench, struct bench_subject *subject);
void bench_cage_close(struct bench *bench);
/* One call of `argument`, to its end. */
int bench_cage_once(struct bench *bench, struct bench_subject *subject);

/* ---- load.c: as many as possible on all processors; `argument`: "spawn", "namespaces", a tool */

int bench_load_prepare(struct bench *bench, struct bench_subject *subject);
int bench_load_run(struct bench *bench, struct bench_subject *subject, double *ret_value);

/* ---- memory.c: of a running cage, in kB */

int bench_memory_bare_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_memory_pss_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_memory_private_run(struct bench *bench, struct bench_subject *subject, double *ret_value);

/* ---- gate.c: connections through a gate; `argument`: what is done (stream, request, many) and how
 * (direct, address, name) */

int bench_gate_prepare(struct bench *bench, struct bench_subject *subject);
int bench_gate_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
void bench_gate_close(void);

/* ---- resident.c: calls from a process that holds `argument` bytes; "fork" or a tool before it */

int bench_resident_prepare(struct bench *bench, struct bench_subject *subject);
int bench_resident_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
void bench_resident_close(void);

/* ---- record.c: calls that leave a record; `argument` is a tool with its own `record` */

int bench_record_prepare(struct bench *bench, struct bench_subject *subject);
int bench_record_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_replay_prepare(struct bench *bench, struct bench_subject *subject);
int bench_replay_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
void bench_record_close(void);

/* ---- peers.c, bundle.c, engines.c: other sandboxes */

int bench_bwrap_prepare(struct bench *bench, struct bench_subject *subject);
int bench_bwrap_filter_prepare(struct bench *bench, struct bench_subject *subject);
int bench_firejail_prepare(struct bench *bench, struct bench_subject *subject);
int bench_bundle_prepare(struct bench *bench, struct bench_subject *subject);
int bench_engine_prepare(struct bench *bench, struct bench_subject *subject);
void bench_engine_finish(struct bench *bench, struct bench_subject *subject);
const char *bench_engine_image(struct bench *bench); /* what they run; made by their prepare */

/* ---- containers.c: our own container backends; `argument` is a tool, an id that ends with "_warm" is
 * served by a pool */

int bench_container_prepare(struct bench *bench, struct bench_subject *subject);
int bench_container_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
void bench_container_close(void);

/* ---- mcp.c: calls through `toolcage mcp`, and a server that `toolcage mcp wrap` runs */

int bench_mcp_prepare(struct bench *bench, struct bench_subject *subject);
int bench_mcp_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_mcp_load_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
int bench_mcp_memory_run(struct bench *bench, struct bench_subject *subject, double *ret_value);
void bench_mcp_close(void);

#endif
