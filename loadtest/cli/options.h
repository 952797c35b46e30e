/* A command line as a table: parsed, checked and printed as help from the same rows. */
#ifndef OVERSELL_LOADTEST_CLI_OPTIONS_H
#define OVERSELL_LOADTEST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXTS_MAX 16

/* Words in the order given; they belong to argv. */
struct texts {
    const char *item[TEXTS_MAX];
    size_t count;
};

enum option_type {
    OPTION_FLAG,     /* bool */
    OPTION_NUMBER,   /* int64_t */
    OPTION_REAL,     /* double, in decimal digits */
    OPTION_PERCENT,  /* double, with "%" behind it: 70 for "70%" */
    OPTION_DURATION, /* int64_t, milliseconds */
    OPTION_TEXT,     /* const char * */
    OPTION_CHOICE,   /* const char *: one of CHOICES */
    OPTION_TEXTS,    /* struct texts: given as often as needed */
};

struct option_row {
    const char *name;  /* "--stock" */
    const char *value; /* what the help calls its value; NULL for a flag */
    enum option_type type;
    size_t offset;              /* where in the settings it goes */
    int64_t min, max;           /* of whole and real numbers, percentages and durations */
    const char *const *choices; /* ended by NULL */
    const char *help;           /* one or two plain sentences; the help wraps them */
};

/* Rows that fill one struct: their offsets are in that struct. */
struct option_rows {
    const char *heading; /* above them in the help */
    const struct option_row *row;
    size_t count;
};

#define OPTION_ROWS(heading, array)                                                                          \
    {                                                                                                        \
        heading, array, sizeof(array) / sizeof(array)[0]                                                     \
    }
#define OPTION_GROUPS_MAX 8

/* Such rows, and where in a command's settings their struct lies. */
struct option_group {
    const struct option_rows *rows;
    size_t base;
};

struct command_line {
    const char *name;     /* the command's word */
    const char *operands; /* what the help calls them; "" for none */
    size_t min_operands, max_operands;
    const char *summary;                           /* what the command finds or measures; the help wraps it */
    const char *example;                           /* a command line that works as it stands; NULL: none */
    struct option_group groups[OPTION_GROUPS_MAX]; /* the rest have no rows */
};

enum options_outcome {
    OPTIONS_OK,
    OPTIONS_HELP, /* --help was asked for and has been printed */
    OPTIONS_BAD,  /* what is wrong, and what is valid, has been printed on stderr */
};

/* Reads argv[1…] into *SETTINGS, which holds the defaults on entry, and the words that are no options into
 * *ret_operands. A value follows its option or stands behind '='. Texts keep pointing into argv. */
enum options_outcome options_parse(const struct command_line *line, int argc, char **argv, void *settings,
                                   struct texts *ret_operands);

/* A whole number in decimal; nothing else. */
bool parse_number(const char *text, int64_t *ret_number);
/* "250ms", "2s", "1m", "1h": milliseconds. */
bool parse_duration(const char *text, int64_t *ret_ms);
/* The shortest way to write a duration that parse_duration reads back; BUFFER of 32 bytes, returned. */
const char *duration_text(int64_t ms, char *buffer);

#endif
