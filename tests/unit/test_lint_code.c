/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the findings about commands that run what a call says: shells, interpreters, and
 * programs on stdin.
 */
#include "lint_support.h"

#include <stdio.h>
#include "base/attr.h"

/* ---- code ----------------------------------------------------------------------------------- */

static void test_shell_code_in_all_spellings(void **state)
{
    static const char *const commands[] = {
        "'bash', '-c', '{x}'",
        "'sh', '-c', 'echo {x}'",
        "'sh', '-lc', '{x}'",
        "'bash', '-euxo', 'pipefail', '-c', '{x}'",
        "'bash', '-o', 'pipefail', '-c', '{x}'",
        "'bash', '-ceu', '{x}'",
        "'bash', '-c', '--', '{x}'",
        "'bash', '-c', '-x', '{x}'",
        "'bash', '--norc', '-c', '{x}'",
        "'bash', '--rcfile', '/dev/null', '-c', '{x}'",
        "'bash', '-c{x}'",
        "'bash', '-c', '{x...}'",
        "'/bin/bash', '-c', '{x}'",
        "'/usr/local/bin/zsh', '-c', '{x}'",
        "'dash', '-c', '{x}'",
        "'fish', '-c', '{x}'",
        "'fish', '--command={x}'",
        "'fish', '--command', '{x}'",
        "'fish', '-C', '{x}'",
        "'busybox', 'sh', '-c', '{x}'",
        "'env', 'bash', '-c', '{x}'",
        "'env', 'A=b', 'bash', '-c', '{x}'",
        "'env', '-i', '-u', 'HOME', 'bash', '-c', '{x}'",
        "'/usr/bin/env', '--', 'bash', '-c', '{x}'",
        "'env', '-S', 'bash -c {x}'",
        "'env', '--split-string=bash {x}'",
        "'timeout', '5', 'sh', '-c', '{x}'",
        "'timeout', '-k', '5', '--signal', 'KILL', '10s', 'sh', '-c', '{x}'",
        "'sudo', '-u', 'nobody', 'sh', '-c', '{x}'",
        "'sudo', '-u', 'nobody', '--', 'sh', '-c', '{x}'",
        "'nice', '-n', '10', 'sh', '-c', '{x}'",
        "'stdbuf', '-o', 'L', 'sh', '-c', '{x}'",
        "'chroot', '/srv', 'sh', '-c', '{x}'",
        "'xargs', '-n', '1', 'sh', '-c', '{x}'",
        "'docker', 'exec', 'box', 'sh', '-c', '{x}'",
        "'kubectl', 'exec', 'pod', '--', 'sh', '-c', '{x}'",
        "'find', '/data', '-exec', 'sh', '-c', '{x}', ';'",
        "'some-wrapper', '--flag', 'bash', '-c', '{x}'",
        "'su', 'user', '-c', '{x}'",
        "'su', '-', 'user', '--command={x}'",
        "'runuser', '-u', 'user', '--', 'bash', '-c', '{x}'",
        "'script', '-qc', '{x}', '/dev/null'",
        "'flock', '/lock', '-c', '{x}'",
        "'watch', '-n', '2', 'ls {x}'",
        "'ssh', 'host', 'ls {x}'",
        "'ssh', '-p', '22', '-o', 'BatchMode=yes', 'host', 'ls', '{x}'",
        "'eval', '{x}'",
        /* The call chooses what is run. */
        "'timeout', '5', '{x}'",
        "'env', '--', '{x}'",
        "'bash', '--', '{x}'",
        "'sh', '{x}'",
        "'find', '/data', '-exec', '{x}', ';'",
        /* Options that run a command. */
        "'git', '-c', 'core.pager={x}', 'log'",
        "'tar', '--to-command={x}', '-xf', 'a.tar'",
        "'rsync', '-e', '{x}', 'a', 'b'",
        "'ssh', '-oProxyCommand={x}', 'host'",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(commands); i++) {
        char lines[256];
        struct row row = { lines, 1 };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_interpreter_code_in_all_spellings(void **state)
{
    static const char *const commands[] = {
        "'python', '-c', '{x}'",
        "'python3', '-c', 'print({x})'",
        "'python3.11', '-c', '{x}'",
        "'/opt/venv/bin/python3.12', '-c', '{x}'",
        "'python3', '-I', '-c', '{x}'",
        "'python3', '-Ic', '{x}'",
        "'python3', '-W', 'ignore', '-c', '{x}'",
        "'python3', '-X', 'dev', '-u', '-c', '{x}'",
        "'python3', '-c{x}'",
        "'pypy3', '-c', '{x}'",
        "'perl', '-e', '{x}'",
        "'perl', '-E', '{x}'",
        "'perl', '-pe', 's/a/{x}/', 'file'",
        "'perl', '-lane', '{x}'",
        "'perl', '-i.bak', '-pe', '{x}'",
        "'perl', '-i', '-pe', '{x}'",
        "'perl', '-MList::Util', '-e', '{x}'",
        "'perl', '-I', 'lib', '-e', '{x}'",
        "'perl', '-e', 'print 1;', '-e', '{x}'",
        "'ruby', '-e', '{x}'",
        "'ruby', '-rjson', '-ne', '{x}'",
        "'node', '-e', '{x}'",
        "'node', '-pe', '{x}'",
        "'node', '--eval', '{x}'",
        "'node', '--eval={x}'",
        "'node', '--print={x}'",
        "'node', '-r', 'fs', '-e', '{x}'",
        "'nodejs', '-p', '{x}'",
        "'deno', 'eval', '{x}'",
        "'deno', 'eval', '--ext=ts', '{x}'",
        "'bun', '-e', '{x}'",
        "'php', '-r', '{x}'",
        "'php8.2', '-d', 'a=b', '-r', '{x}'",
        "'lua5.4', '-e', '{x}'",
        "'Rscript', '-e', '{x}'",
        "'julia', '-e', '{x}'",
        "'pwsh', '-NonInteractive', '-Command', '{x}'",
        "'osh', '-c', '{x}'",
        "'make', '--eval={x}'",
        "'vim', '-es', '-c', '{x}'",
        "'gdb', '-batch', '-ex', '{x}'",
        "'awk', '{x}'",
        "'awk', '-F', ',', '{x}'",
        "'gawk', '-v', 'a=1', '$1 == \"{x}\"'",
        "'sed', '{x}'",
        "'sed', '-n', 's/{x}/y/', 'file'",
        "'sed', '-E', '-e', '{x}'",
        "'sed', '-e', 's/a/b/', '-e', '{x}', 'file'",
        "'sed', '-i', '--expression={x}', 'file'",
        "'env', 'awk', '{x}'",
        "'timeout', '5', 'sed', '{x}'",
        "'uv', 'run', 'python', '-c', '{x}'",
        "'python3.11-dbg', '-c', '{x}'",
        "'python3', '--', '{x}'",
        "'node', '--import=data:text/javascript,{x}'",
        "'perl', '-M{x}', '-e', '1'",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(commands); i++) {
        char lines[256];
        struct row row = { lines, 1 };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_text_that_is_data_for_an_interpreter_is_left_alone(void **state)
{
    static const char *const commands[] = {
        "'bash', '-c', 'echo \"$1\"', '--', '{x}'",
        "'bash', '-c', 'grep -- \"$1\" file', 'sh', '{x}'",
        "'sh', 'script.sh', '-c', '{x}'",
        "'bash', '-s', '{x}'",
        "'bash', '-o', 'pipefail', 'script.sh', '{x}'",
        "'python3', 'script.py', '-c', '{x}'",
        "'python3', '-m', 'tool', '-c', '{x}'",
        "'python3', '-c', 'import sys', '{x}'",
        "'python3', '-', '{x}'",
        "'perl', 'script.pl', '-e', '{x}'",
        "'perl', '-e', 'print shift', '--', '{x}'",
        "'node', 'app.js', '--eval', '{x}'",
        "'deno', 'run', 'app.ts', 'eval', '{x}'",
        "'awk', '-v', 'name={x}', '$1 == name'",
        "'awk', '-vname={x}', '$1 == name'",
        "'awk', '-f', 'program.awk', '{x}'",
        "'awk', '{{print $1}}', '{x}'",
        "'sed', 's/a/b/', '{x}'",
        "'sed', '-f', 'script.sed', '{x}'",
        "'sed', '-e', 's/a/b/', '--', '{x}'",
        "'grep', '-c', '{x}'",
        "'grep', '-e', '{x}'",
        "'git', '-C', '{x}', 'log'",
        "'git', 'commit', '-c', '{x}'",
        "'grep', '-rn', 'python', '{x}'",
        "'highlight', '--syntax', 'bash', '{x}'",
        "'python3', '/scripts/{x}'",
        "'gcc', '-c', '{x}'",
        "'curl', '--', '{x}'",
        "'man', 'awk', '{x}'",
        "'ssh', '--', '{x}'",
        "'env', 'NAME={x}', 'program'",
        "'timeout', '{x}', 'program'",
        "'bash', '-c', 'echo hello'",
        "'echo', '{{x}}'",
        "'bashful', '-c', '{x}'",
        "'python3-config', '-c', '{x}'",
        "'make', '-C', 'dir', '{x}'",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(commands); i++) {
        char lines[256];
        struct row row = { lines, 0 };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void check_shell_code(const char *const *codes, size_t count, size_t expected)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        struct row row = { lines, expected };
        (void)snprintf(lines, sizeof lines, "command = ['bash', '-c', '''%s''', '_', '{x}']",
                       codes[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_shell_code_that_runs_its_arguments(void **state)
{
    static const char *const codes[] = {
        "eval \"$1\"",
        "eval\t\"$1\"",
        "cd /w; eval $1",
        "$1",
        "\"$1\"",
        "\"$@\"",
        "exec \"$@\"",
        "set -e; \"$@\"",
        "ls; $1",
        "true && \"$1\"",
        "if true; then \"$1\"; fi",
        "( \"$1\" )",
        "x=$(\"$1\")",
        "echo \"$(sh -c \"$1\")\"",
        "echo `$1`",
        "sh -c \"$1\"",
        "cd /w && bash -c \"$1\"",
        "bash -euc \"$1\"",
        "python3 -c \"$1\"",
        "bash \"$1\"",
        "bash <<< \"$1\"",
        "echo \"$1\" | sh",
        "echo \"$1\" | tr a b | bash",
        "echo \"$1\" | python3 -",
        "x=$1; $x",
        "x=\"$1\"; $x",
        ". \"$1\"",
        "source \"$1\"",
        "trap \"$1\" EXIT",
        "timeout 5 $1",
        "timeout 5 \"$1\"",
        "env \"$@\"",
        "env A=b \"$@\"",
        "find . $1",
        "[[ $1 -eq 1 ]]",
        "echo $(( $1 + 1 ))",
        "echo $1",
        "${{1}}",
    };
    (void)state;
    check_shell_code(codes, tci_array_size(codes), 1);
}

static void test_shell_code_that_keeps_its_arguments_as_data(void **state)
{
    static const char *const codes[] = {
        "echo \"$1\"",
        "grep -- \"$1\" file | wc -l",
        "cd \"$1\" && ls",
        "evaluate \"$1\"",
        "retrieval \"$1\"",
        "x=$1; echo \"$x\"",
        "x=\"$1\"; echo \"$x\"",
        "timeout 5 grep -- \"$1\" file",
        "env A=b grep -- \"$1\" file",
        "python3 script.py \"$1\"",
        "echo \"$(grep -- \"$1\" file)\" \"$1\"",
        "if [ \"$1\" = a ]; then ls; fi",
        "[[ \"$1\" == a ]] && ls",
        "for f in \"$@\"; do echo \"$f\"; done",
        "echo \"$#\" $?",
        "echo 5\\$1",
        "ls > \"$1\"",
        "printf %s \"$1\" | sha256sum",
        "$HOME/bin/x \"$1\"",
        "echo hello",
        "",
    };
    (void)state;
    check_shell_code(codes, tci_array_size(codes), 0);
}

static void test_shell_code_runs_only_what_comes_from_the_call(void **state)
{
    static const struct row rows[] = {
        { "command = ['sh', '-c', '$0', '{x}']", 1 },
        { "command = ['sh', '-c', '\"$@\"', 'sh', '{x...}']", 1 },
        { "command = ['sh', '-c', 'exec \"$@\"', 'sh', 'git', 'log', '{x}']", 0 },
        { "command = ['sh', '-c', 'exec \"$@\"', 'sh', 'bash', '-c', '{x}']", 1 },
        { "command = ['sh', '-c', '\"$1\" \"$2\"', 'sh', 'git', '{x}']", 0 },
        { "command = ['sh', '-c', 'eval \"$1\"', 'sh', 'fixed']", 0 },
        { "command = ['sh', '-c', 'echo \"$1\"', 'sh', 'bash', '-c', '{x}']", 0 },
    };
    (void)state;
    CHECK(rows, SHELL_TEMPLATE);
}

static void check_commands(const char *const *commands, size_t count, size_t expected)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        struct row row = { lines, expected };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

/* Without a placeholder the call's arguments are JSON on stdin: {"a":"$(id)"} runs id. */
static void test_interpreter_that_reads_its_program_from_stdin(void **state)
{
    static const char *const commands[] = {
        "'bash'",
        "'/bin/sh'",
        "'sh', '-s'",
        "'bash', '-'",
        "'bash', '--'",
        "'bash', '-eu'",
        "'bash', '-o', 'pipefail'",
        "'bash', '-s', 'argument'",
        "'bash', '/dev/stdin'",
        "'fish'",
        "'python3'",
        "'python3', '-'",
        "'python3.11', '-u', '-'",
        "'python3', '-X', 'dev'",
        "'python3', '/proc/self/fd/0'",
        "'node'",
        "'node', '-'",
        "'node', '-r', 'fs'",
        "'node', '--require=fs'",
        "'perl'",
        "'perl', '-MExporter'",
        "'ruby', '-rjson'",
        "'php', '-d', 'a=b'",
        "'pwsh', '-Command', '-'",
        "'lua', '-'",
        "'awk', '-f', '-'",
        "'awk', '-f/dev/stdin', 'file'",
        "'sed', '--file=-', 'file'",
        "'make', '-f', '-'",
        "'parallel'",
        /* Behind others. */
        "'env', 'bash'",
        "'env', '-u', 'FOO', 'A=b', 'python3', '-'",
        "'env', '-S', 'bash -s'",
        "'timeout', '5', 'sh'",
        "'nice', '-n', '5', 'node'",
        "'busybox', 'sh'",
        "'sudo', '-s'",
        "'sudo', '-u', 'bob', 'sh'",
        "'su', 'bob'",
        "'su', 'bob', '-c', 'sh'",
        "'chroot', '/srv/root'",
        "'docker', 'exec', '-i', 'c', 'sh'",
        "'kubectl', 'exec', '-i', 'p', '--', 'bash', '-s'",
        /* What xargs reads becomes the code, the script or the program. */
        "'xargs', '-0', 'sh', '-c'",
        "'xargs', 'bash'",
        "'xargs', 'env'",
        "'xargs', '-I', '%', 'sh', '-c', 'ls %'",
        "'xargs', '-I%', 'sh', '-c', 'ls %'",
    };
    (void)state;
    check_commands(commands, tci_array_size(commands), 1);
}

static void test_json_on_stdin_that_is_data_is_left_alone(void **state)
{
    static const char *const commands[] = {
        "'cat'",
        "'jq', '.'",
        "'bash', 'script.sh'",
        "'bash', '-eu', '--', 'script.sh', '-s'",
        "'bash', '-o', 'pipefail', 'script.sh'",
        "'bash', '-', 'script.sh'",
        "'bash', '--version'",
        "'python3', '/srv/x.py'",
        "'python3', '-u', '/srv/x.py', '-'",
        "'python3', '-m', 'json.tool'",
        "'python3', '-mjson.tool'",
        "'python3', '-V'",
        "'python3', '-c', 'import json,sys; json.load(sys.stdin)'",
        "'python3', '-c', 'import sys', '-'",
        "'node', '--version'",
        "'node', '-r', 'fs', 'app.js'",
        "'node', '-e', '0', '-'",
        "'perl', '-ne', 'print'",
        "'perl', '-MExporter', '-e', '1'",
        "'ruby', '-rjson', 'x.rb'",
        "'php', '-r', '1;'",
        "'awk', 'NR == 1'",
        "'awk', '-f', 'x.awk', '-'",
        "'sed', 's/a/b/', '-'",
        "'tar', '-xf', '-'",
        "'make', '-f', 'x.mk'",
        "'make'",
        "'grep', 'python'",
        "'man', 'bash'",
        "'env', 'A=b', 'python3', 'x.py'",
        "'timeout', '5', 'jq', '.'",
        "'sudo', '-l'",
        "'su', 'bob', '-c', 'ls'",
        "'docker', 'pull', 'python'",
        "'docker', 'exec', '-i', 'c', 'python3', 'x.py'",
        "'xargs', 'ls', '--'",
        "'xargs', 'sh', '-c', 'echo \"$1\"', '_'",
        "'xargs', 'python3', 'x.py'",
        "'xargs', '-I', '%', 'sh', '-c', 'echo \"$1\"', '_', '%'",
    };
    (void)state;
    check_commands(commands, tci_array_size(commands), 0);
}

static void check_stdin_code(const char *const *codes, size_t count, size_t expected)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        struct row row = { lines, expected };
        (void)snprintf(lines, sizeof lines, "command = ['sh', '-c', '''%s''']", codes[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_shell_code_that_runs_its_stdin(void **state)
{
    static const char *const codes[] = {
        "sh",
        "exec bash -s",
        "cd /w && python3 -",
        "bash 2>&1",
        "bash > /tmp/log",
        "bash </dev/stdin",
        "if true; then sh; fi",
        "( sh )",
        "{{ sh; }}",
        "true || sh",
        "timeout 5 sh",
        "cat | sh",
        "jq -r .code | tr a b | python3 -",
        "tee >(sh)",
        "bash <(cat)",
        ". /dev/stdin",
        ". <(cat)",
        "eval \"$(cat)\"",
        "eval $(cat)",
        "eval `cat`",
        "eval \"$(</dev/stdin)\"",
        "eval \"$(jq -r .code)\"",
        "eval \"$(cat; true)\"",
        "$(cat)",
        "sh -c \"$(cat)\"",
        "python3 -c \"$(cat)\"",
        "bash <<< \"$(cat)\"",
        "echo \"$(cat)\" | sh",
        "x=$(cat); eval \"$x\"",
        "x=\"$(cat)\"; sh -c \"$x\"",
        "x=$(cat); $x",
        "x=$(cat); y=$x; \"$y\"",
        "read -r x; eval \"$x\"",
        "while read -r x; do $x; done",
        "for x in $(cat); do $x; done",
        "set -- $(cat); \"$@\"",
        "sh -c sh",
        "sh -c \"eval \\\"\\$(cat)\\\"\"",
        "xargs sh -c",
        "xargs -I % sh -c \"ls %\"",
    };
    (void)state;
    check_stdin_code(codes, tci_array_size(codes), 1);
}

static void test_shell_code_that_keeps_its_stdin_as_data(void **state)
{
    static const char *const codes[] = {
        "",
        "cat",
        "jq . > /tmp/x",
        "cd /srv && exec python3 x.py",
        "python3 x.py 2>&1 | tee /tmp/log",
        "bash < /srv/x.sh",
        "bash <<< ls",
        "cat | python3 x.py",
        "python3 -c \"import sys\"",
        "curl -s https://example.com/x | sh",
        "eval \"$(ssh-agent -s)\"",
        "d=$(dirname \"$0\"); exec \"$d/run\"",
        "d=/srv/app; exec $d/bin/run",
        "exec $HOME/bin/run",
        "x=$(cat); echo \"$x\"",
        "x=$(jq -r .name); grep -- \"$x\" file",
        "x=$(cat); python3 x.py \"$x\"",
        "read -r x; echo \"$x\" > \"/tmp/$x\"",
        "while read -r x; do ls -- \"$x\"; done",
        "if [ \"$(cat)\" = a ]; then ls; fi",
        "x=$((1+2)); exit $((x+1))",
        "command -v bash",
        "which python3",
        "sh -c \"cat\"",
        "xargs ls --",
        "xargs python3 x.py",
        "echo bash",
        "echo \"sh; sh\"",
    };
    (void)state;
    check_stdin_code(codes, tci_array_size(codes), 0);
}

static void test_finding_names_the_interpreter_that_runs_its_stdin(void **state)
{
    (void)state;
    check_message("[tool.t]\ncommand = ['env', '/bin/bash']\n", TCI_FINDING_SHELL_TEMPLATE,
                  "JSON on stdin, become code for \"bash\"",
                  "as an argument of its own behind the code or script");
}

static void test_finding_names_the_interpreter_and_points_at_the_code(void **state)
{
    struct tci_findings *findings = lint("[tool.t]\n"
                                         "command = ['timeout', '5',\n"
                                         "  '/bin/bash', '-c',\n"
                                         "  '{x}']\n");
    const struct tci_finding *f = first_of(findings, TCI_FINDING_SHELL_TEMPLATE);
    (void)state;
    assert_non_null(strstr(f->message, "\"bash\""));
    assert_int_equal(f->pos.line, 4);
    tci_findings_free(findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shell_code_in_all_spellings),
        cmocka_unit_test(test_interpreter_code_in_all_spellings),
        cmocka_unit_test(test_text_that_is_data_for_an_interpreter_is_left_alone),
        cmocka_unit_test(test_shell_code_that_runs_its_arguments),
        cmocka_unit_test(test_shell_code_that_keeps_its_arguments_as_data),
        cmocka_unit_test(test_shell_code_runs_only_what_comes_from_the_call),
        cmocka_unit_test(test_interpreter_that_reads_its_program_from_stdin),
        cmocka_unit_test(test_json_on_stdin_that_is_data_is_left_alone),
        cmocka_unit_test(test_shell_code_that_runs_its_stdin),
        cmocka_unit_test(test_shell_code_that_keeps_its_stdin_as_data),
        cmocka_unit_test(test_finding_names_the_interpreter_that_runs_its_stdin),
        cmocka_unit_test(test_finding_names_the_interpreter_and_points_at_the_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
