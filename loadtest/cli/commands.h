/* The load test's sub-commands and what their exit statuses mean. */
#ifndef OVERSELL_LOADTEST_CLI_COMMANDS_H
#define OVERSELL_LOADTEST_CLI_COMMANDS_H

/* A command that was interrupted exits with 128 + the signal's number, as shells do. */
enum exit_status {
    ENDED_AS_EXPECTED = 0,
    ENDED_BROKEN = 1,      /* a promise was broken, or a flaw that should have been caught was not */
    ENDED_USAGE = 2,       /* the command line is wrong; nothing was started */
    ENDED_ENVIRONMENT = 3, /* a server, a service or a tool is missing or has died */
};

/* Each takes its own word as argv[0] and returns an exit status. */
int compare_main(int argc, char **argv);
int demo_main(int argc, char **argv);
int explore_main(int argc, char **argv);
int faults_main(int argc, char **argv);
int contend_main(int argc, char **argv);
int rush_main(int argc, char **argv);
int soak_main(int argc, char **argv);
int report_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int check_main(int argc, char **argv);
int init_main(int argc, char **argv);
/* `explore` for a description of a service (FILE.json), and for SQL alone (FILE.spec). */
int explore_own_main(int argc, char **argv);
int spec_main(int argc, char **argv);

#endif
