/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the terminal while a question stands on it. */
#ifndef TCI_CLI_APPROVE_TERMINAL_H
#define TCI_CLI_APPROVE_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

struct cli_terminal {
    int fd, device, signals;
    uint64_t deadline; /* on tci_clock_us(); nothing here waits for longer */
    struct termios saved;
    bool is_changed;
    bool has_waited; /* another question was there before ours */
    sigset_t before;
};

/* Waits until no other question stands on the terminal, and takes it. 1: it is ours; 0: no; -1: there
 * is nobody to ask. Whatever it returns, close it. */
int cli_terminal_open(struct cli_terminal *terminal, uint64_t deadline);
void cli_terminal_close(struct cli_terminal *terminal);

/* 0 where it is not known. */
unsigned cli_terminal_columns(const struct cli_terminal *terminal);
unsigned cli_terminal_rows(const struct cli_terminal *terminal);

/* False: a signal came, the deadline has passed, or it could not be written. */
bool cli_terminal_say(const struct cli_terminal *terminal, const char *text, size_t length);
bool cli_terminal_pause(const struct cli_terminal *terminal, uint64_t ms);
/* Waits until everything is on the screen, then throws away what was typed until now. */
bool cli_terminal_forget_typed(const struct cli_terminal *terminal);

/* One line with its '\n'. Its length, 0 where there is none, or it does not fit. */
size_t cli_terminal_read_line(const struct cli_terminal *terminal, char *line, size_t size);

#endif
