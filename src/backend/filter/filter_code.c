/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing the BPF program. Trusts the ranges that it is given.
 *
 *     load arch; another one: kill
 *     load number
 *     tree of comparisons over the ranges, about log2(ranges) deep
 *     rules: load an argument, compare, answer
 *
 * It is written from its end to its start. A BPF program only jumps forward, so every target is
 * written, and its place known, before the jump to it. Places are counted from the end: the last
 * instruction is 1. A conditional jump reaches 255 instructions; what is further away gets a
 * stepping stone near by.
 *
 * The kernel decides for each number, without arguments, whether it is always allowed, and keeps
 * that in a bitmap; so the time to install is the sum of the paths to all numbers, plus what the
 * translation of each instruction costs. Hence: few instructions (answers are shared, one number
 * among equal neighbours takes one comparison) and short paths (wide ranges stand higher).
 */
#include "backend/filter/filter_table.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE_MAX = BPF_MAXINSNS,
    JUMP_MAX = 250, /* 255, less the stepping stones that may come between */
    BLOCKS_MAX = 64,
    RETURNS_MAX = 24,
    RANGES_MAX = TCI_NUMBER_LIMIT + 4,
    SINGLES_MAX = 4, /* in a cluster; measured: more make paths long, fewer make the tree large */
};

/* Counted from the end; 0 is no place. */
typedef unsigned place;

struct assembler {
    const struct tci_range *ranges;
    unsigned range_count, cluster_count;
    unsigned written; /* instructions, at the end of code */
    unsigned block_count, return_count;
    bool overflow;
    struct {
        tci_rules rules;
        place at;
    } blocks[BLOCKS_MAX];
    struct {
        uint32_t action;
        place at;
    } returns[RETURNS_MAX];
    uint16_t clusters[RANGES_MAX + 1]; /* the first range of each, and the end */
    struct sock_filter code[CODE_MAX];
};

/* ---- instructions ---- */

static place put(struct assembler *as, struct sock_filter instruction)
{
    if (as->written == CODE_MAX) {
        as->overflow = true;
        return as->written;
    }
    as->written++;
    as->code[CODE_MAX - as->written] = instruction;
    return as->written;
}

/* How far the next instruction would have to jump. */
static unsigned distance(const struct assembler *as, place to)
{
    return as->written - to;
}

/* A place near enough with the same effect: itself, its answer again, or a jump to it. */
static place near(struct assembler *as, place to)
{
    struct sock_filter there = as->code[CODE_MAX - to];
    if (distance(as, to) <= JUMP_MAX)
        return to;
    if (there.code == (BPF_RET | BPF_K))
        return put(as, there);
    return put(as, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, distance(as, to)));
}

static place compare(struct assembler *as, uint16_t how, uint32_t value, place yes, place no)
{
    yes = near(as, yes);
    no = near(as, no);
    return put(as,
               (struct sock_filter)BPF_JUMP(BPF_JMP | how | BPF_K, value,
                                            (uint8_t)distance(as, yes), (uint8_t)distance(as, no)));
}

static place load(struct assembler *as, size_t offset)
{
    return put(as, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The instruction that returns `action`: one that is near, or a new one. */
static place answer_with(struct assembler *as, uint32_t action)
{
    unsigned i;
    for (i = 0; i < as->return_count; i++)
        if (as->returns[i].action == action)
            break;
    if (i < as->return_count && distance(as, as->returns[i].at) <= JUMP_MAX)
        return as->returns[i].at;
    if (i == RETURNS_MAX)
        return put(as, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
    if (i == as->return_count)
        as->return_count++;
    as->returns[i].action = action;
    as->returns[i].at = put(as, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
    return as->returns[i].at;
}

/* ---- rules ---- */

/* A written test: where it starts, and where it goes on when its argument is loaded already. */
struct written_test {
    place start, loaded;
    unsigned argument;
    uint32_t mask;
};

static struct written_test put_test(struct assembler *as, const struct tci_test *test, place yes,
                                    place no)
{
    struct written_test done = { .argument = test->argument, .mask = test->mask };
    place at = no;
    switch ((enum tci_test_kind)test->kind) {
    case TCI_TEST_IS:
        for (unsigned i = test->count; i-- > 0;)
            at = compare(as, BPF_JEQ, test->values[i], yes, at);
        break;
    case TCI_TEST_BETWEEN:
        at = compare(as, BPF_JGT, test->values[1], no, yes);
        if (test->values[0] > 0)
            at = compare(as, BPF_JGE, test->values[0], at, no);
        break;
    case TCI_TEST_HAS:
        at = compare(as, BPF_JSET, test->values[0], yes, no);
        break;
    case TCI_TEST_NONE:
        break;
    }
    done.loaded = at;
    if (test->mask != UINT32_MAX)
        (void)put(as, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, test->mask));
    /* The low half of the argument: both architectures are little-endian. */
    done.start = load(as, offsetof(struct seccomp_data, args[test->argument]));
    return done;
}

/* Where the lines of one rule start; `pass` is where a call goes that it lets through. */
static place put_rule(struct assembler *as, unsigned rule, place pass)
{
    struct written_test below = { 0 };
    for (unsigned i = tci_rule_line_count; i-- > 0;) {
        const struct tci_rule_line *line = &tci_rule_lines[i];
        struct written_test first = { 0 };
        place yes;
        if (line->rule != rule)
            continue;
        yes = line->action == SECCOMP_RET_ALLOW ? pass : answer_with(as, line->action);
        first.start = yes;
        for (unsigned t = TCI_TESTS_MAX; t-- > 0;) {
            const struct tci_test *test = &line->tests[t];
            bool same = t == 0 && below.loaded && below.argument == test->argument &&
                        below.mask == test->mask;
            if (test->kind == TCI_TEST_NONE)
                continue;
            /* The next line may ask about the same argument: it is loaded when the first test of
             * this one fails. */
            first = put_test(as, test, first.start, same ? below.loaded : below.start);
        }
        below = first;
    }
    return below.start;
}

/* The code that asks all rules of a set, one after the other; written once. */
static place block_for(struct assembler *as, tci_rules rules)
{
    place at = 0;
    for (unsigned i = 0; i < as->block_count; i++)
        if (as->blocks[i].rules == rules)
            return as->blocks[i].at;
    for (unsigned rule = TCI_RULE_COUNT; rule-- > 0;)
        if (rules & (tci_rules)1 << rule)
            at = put_rule(as, rule, at ? at : answer_with(as, SECCOMP_RET_ALLOW));
    if (as->block_count == BLOCKS_MAX) {
        as->overflow = true;
        return at;
    }
    as->blocks[as->block_count].rules = rules;
    as->blocks[as->block_count++].at = at;
    return at;
}

/* ---- the tree ---- */

static bool has_rules(tci_answer answer)
{
    return answer != 0 && !(answer & TCI_ANSWER_ERRNO);
}

static place leaf(struct assembler *as, tci_answer answer)
{
    if (answer == TCI_ANSWER_KILL)
        return answer_with(as, SECCOMP_RET_KILL_PROCESS);
    if (answer & TCI_ANSWER_ERRNO)
        return answer_with(as, SECCOMP_RET_ERRNO | (answer & ~TCI_ANSWER_ERRNO));
    return answer ? block_for(as, answer) : answer_with(as, SECCOMP_RET_ALLOW);
}

/*
 * Ranges are gathered into clusters first: one answer with a few single numbers in it that have
 * others. Those are compared one after the other, which takes one instruction for each of them
 * where a tree would take two. The tree is made of clusters.
 */
static bool is_single(const struct assembler *as, unsigned range)
{
    return range + 1 < as->range_count &&
           as->ranges[range + 1].first == as->ranges[range].first + 1;
}

static void gather(struct assembler *as)
{
    const struct tci_range *ranges = as->ranges;
    for (unsigned at = 0; at < as->range_count; at++) {
        unsigned singles = 0;
        as->clusters[as->cluster_count++] = (uint16_t)at;
        while (singles < SINGLES_MAX && is_single(as, at + 1) &&
               ranges[at + 2].answer == ranges[at].answer) {
            singles++;
            at += 2;
        }
    }
    as->clusters[as->cluster_count] = (uint16_t)as->range_count;
}

static bool is_leaf(const struct assembler *as, unsigned cluster)
{
    return as->clusters[cluster + 1] == as->clusters[cluster] + 1;
}

static place put_cluster(struct assembler *as, unsigned cluster)
{
    const struct tci_range *ranges = as->ranges;
    unsigned first = as->clusters[cluster], end = as->clusters[cluster + 1];
    place at = leaf(as, ranges[first].answer);
    for (unsigned i = first + 1; i < end; i += 2)
        at = compare(as, BPF_JEQ, ranges[i].first, leaf(as, ranges[i].answer), at);
    return at;
}

/* How much stands before a cluster: numbers, each of which is a path to walk, and clusters. */
static unsigned weight_before(const struct assembler *as, unsigned cluster)
{
    uint32_t number = cluster < as->cluster_count ? as->ranges[as->clusters[cluster]].first
                                                  : (uint32_t)TCI_NUMBER_LIMIT;
    return (number < TCI_NUMBER_LIMIT ? number : TCI_NUMBER_LIMIT) + cluster;
}

/* The cluster that begins the right half of low ... high: the halves are to weigh the same. */
static unsigned middle(const struct assembler *as, unsigned low, unsigned high)
{
    unsigned twice = weight_before(as, low) + weight_before(as, high + 1), best = low + 1;
    while (best < high && weight_before(as, best) + weight_before(as, best + 1) < twice)
        best++;
    return best;
}

/* The tree for the clusters low ... high. */
static place put_tree(struct assembler *as, unsigned low, unsigned high)
{
    place left = 0, right = 0;
    unsigned split;
    if (low == high)
        return put_cluster(as, low);
    split = middle(as, low, high);
    /* What is long first, single answers last: those near by can be shared, and what was written
     * last needs no jump. */
    if (split < high || !is_leaf(as, high))
        right = put_tree(as, split, high);
    if (low < split - 1 || !is_leaf(as, low))
        left = put_tree(as, low, split - 1);
    if (!right)
        right = put_cluster(as, high);
    if (!left)
        left = put_cluster(as, low);
    return compare(as, BPF_JGE, as->ranges[as->clusters[split]].first, right, left);
}

static void put_program(struct assembler *as, uint32_t arch)
{
    place tree, kill;
    for (unsigned i = as->range_count; i-- > 0;)
        if (has_rules(as->ranges[i].answer))
            (void)block_for(as, as->ranges[i].answer);
    gather(as);
    tree = put_tree(as, 0, as->cluster_count - 1);
    if (tree != as->written)
        put(as, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, distance(as, tree)));
    tree = load(as, offsetof(struct seccomp_data, nr));
    kill = answer_with(as, SECCOMP_RET_KILL_PROCESS);
    (void)compare(as, BPF_JEQ, arch, tree, kill);
    (void)load(as, offsetof(struct seccomp_data, arch));
}

int tci_filter_assemble(uint32_t arch, const struct tci_range *ranges, unsigned count,
                        struct tci_filter *ret, struct tc_error *reterr)
{
    struct assembler *as = malloc(sizeof *as);
    struct sock_filter *code = NULL;
    if (!as)
        return tci_error_no_memory(reterr);
    memset(as, 0, offsetof(struct assembler, code));
    as->ranges = ranges;
    as->range_count = count;
    put_program(as, arch);
    if (!as->overflow)
        code = malloc(as->written * sizeof *code);
    if (code) {
        memcpy(code, &as->code[CODE_MAX - as->written], as->written * sizeof *code);
        ret->code = code;
        ret->count = (unsigned short)as->written;
    } else if (as->overflow)
        (void)tci_error_set(reterr, TC_ERROR_INTERNAL, "the system call filter is too long");
    else
        (void)tci_error_no_memory(reterr);
    free(as);
    return code ? 0 : -1;
}
