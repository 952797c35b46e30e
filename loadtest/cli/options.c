/* A command line as a table: parsed, checked and printed as help from the same rows. */
#include "loadtest/cli/options.h"

#include "loadtest/cli/plain_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t ms;
} UNITS[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

#define UNIT_COUNT (sizeof UNITS / sizeof UNITS[0])

/* ---- values -------------------------------------------------------------------------------------------- */

/* Reads the digits that TEXT starts with; NULL if there are none or too many, else what follows them. */
static const char *read_digits(const char *text, int64_t *ret_number)
{
    if (text[0] < '0' || text[0] > '9')
        return NULL;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno)
        return NULL;
    *ret_number = number;
    return end;
}

bool parse_number(const char *text, int64_t *ret_number)
{
    int64_t number;
    const char *rest = read_digits(text, &number);
    if (!rest || *rest)
        return false;
    *ret_number = number;
    return true;
}

bool parse_duration(const char *text, int64_t *ret_ms)
{
    int64_t number;
    const char *unit = read_digits(text, &number);
    for (size_t i = 0; unit && i < UNIT_COUNT; i++)
        if (strcmp(unit, UNITS[i].name) == 0)
            return !__builtin_mul_overflow(number, UNITS[i].ms, ret_ms);
    return false;
}

/* A decimal number without sign or exponent, with SUFFIX behind it. */
static bool parse_real(const char *text, const char *suffix, double *ret_number)
{
    char *end;
    *ret_number = strtod(text, &end);
    bool is_plain = end > text && strspn(text, "0123456789.") == (size_t)(end - text);
    return is_plain && strcmp(end, suffix) == 0;
}

const char *duration_text(int64_t ms, char *buffer)
{
    size_t i = 0;
    while (i < UNIT_COUNT - 1 && (ms == 0 || ms % UNITS[i].ms != 0))
        i++;
    snprintf(buffer, 32, "%" PRId64 "%s", ms / UNITS[i].ms, UNITS[i].name);
    return buffer;
}

/* ---- rows -----------------------------------------------------------------------------------------------*/

/* Where a walk over a command's rows is; starts zeroed. */
struct cursor {
    size_t group, row;
};

/* The next row, and where its values lie from the beginning of the settings; NULL after the last. */
static const struct option_row *next_row(const struct command_line *line, struct cursor *cursor,
                                         size_t *ret_offset)
{
    while (cursor->group < OPTION_GROUPS_MAX && line->groups[cursor->group].rows) {
        const struct option_group *group = &line->groups[cursor->group];
        if (cursor->row < group->rows->count) {
            const struct option_row *row = &group->rows->row[cursor->row++];
            *ret_offset = group->base + row->offset;
            return row;
        }
        *cursor = (struct cursor){.group = cursor->group + 1};
    }
    return NULL;
}

/* ---- help ---------------------------------------------------------------------------------------------- */

#define HELP_COLUMN 28
#define HELP_WIDTH 100
#define HELP_TEXT_MAX 1024

/* Prints TEXT, whose first line starts in column FROM, in lines that start in column COLUMN. '\n' ends a line. */
static void print_wrapped(const char *text, size_t from, size_t column)
{
    size_t at = from;
    while (*text) {
        size_t length = strcspn(text, " \n"), width = 0;
        for (size_t i = 0; i < length; i++)
            width += ((unsigned char)text[i] & 0xc0) != 0x80; /* a character of UTF-8 */
        if (at > from && at + 1 + width > HELP_WIDTH) {
            printf("\n%*s", (int)column, "");
            at = from = column;
        } else if (at > from) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)length, text);
        at += width;
        text += length;
        if (*text == '\n') {
            printf("\n%*s", (int)column, "");
            at = from = column;
        }
        text += *text != 0;
    }
}

static void print_choices(FILE *out, const struct option_row *row)
{
    for (size_t i = 0; row->choices[i]; i++)
        fprintf(out, "%s%s", i ? ", " : "", row->choices[i]);
}

/* AT is where the value lies. */
static void print_default(FILE *out, const struct option_row *row, const char *at)
{
    char duration[32];
    switch (row->type) {
    case OPTION_NUMBER:
        if (*(const int64_t *)(const void *)at >= row->min)
            fprintf(out, " (default: %" PRId64 ")", *(const int64_t *)(const void *)at);
        break;
    case OPTION_REAL: fprintf(out, " (default: %g)", *(const double *)(const void *)at); break;
    case OPTION_PERCENT: fprintf(out, " (default: %g%%)", *(const double *)(const void *)at); break;
    case OPTION_DURATION:
        fprintf(out, " (default: %s)", duration_text(*(const int64_t *)(const void *)at, duration));
        break;
    case OPTION_CHOICE:
        fputs(" (", out);
        print_choices(out, row);
        fprintf(out, "; default: %s)", *(const char *const *)(const void *)at);
        break;
    case OPTION_TEXT:
        if (*(const char *const *)(const void *)at)
            fprintf(out, " (default: %s)", *(const char *const *)(const void *)at);
        break;
    case OPTION_FLAG:
    case OPTION_TEXTS: break;
    }
}

static void print_row(const struct option_row *row, const char *at)
{
    char head[HELP_COLUMN + 40];
    int width = snprintf(head, sizeof head, "  %s%s%s", row->name, row->value ? " " : "",
                         row->value ? row->value : "");
    printf("%-*s", HELP_COLUMN, head);
    if (width >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    char text[HELP_TEXT_MAX] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out)
        return;
    fputs(row->help, out);
    print_default(out, row, at);
    (void)fclose(out);
    print_wrapped(text, HELP_COLUMN, HELP_COLUMN);
    putchar('\n');
}

static void print_help(const struct command_line *line, const void *settings)
{
    printf("usage: loadtest %s [OPTION…]%s%s\n\n", line->name, *line->operands ? " " : "", line->operands);
    print_wrapped(line->summary, 0, 0);
    if (line->example)
        printf("\n\nExample: %s", line->example);
    putchar('\n');
    struct cursor cursor = {0};
    size_t offset, group = SIZE_MAX;
    for (const struct option_row *row; (row = next_row(line, &cursor, &offset));) {
        if (cursor.group != group)
            printf("\n%s:\n", line->groups[cursor.group].rows->heading);
        group = cursor.group;
        print_row(row, (const char *)settings + offset);
    }
    printf("%-*s%s\n\nA duration has a unit: 250ms, 2s, 1m, 1h.\n", HELP_COLUMN, "  --help",
           "Print this text.");
}

/* ---- parsing ------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static enum options_outcome bad(const struct command_line *line,
                                                                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    plain_print(stderr, "loadtest %s: ", line->name);
    plain_vprint(stderr, format, arguments);
    plain_print(stderr, "\nSee loadtest %s --help.\n", line->name);
    va_end(arguments);
    return OPTIONS_BAD;
}

static const struct option_row *find_row(const struct command_line *line, const char *name, size_t length,
                                         size_t *ret_offset)
{
    struct cursor cursor = {0};
    const struct option_row *row;
    while ((row = next_row(line, &cursor, ret_offset)))
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
            break;
    return row;
}

static enum options_outcome unknown_option(const struct command_line *line, const char *word)
{
    plain_print(stderr, "loadtest %s: unknown option '%s' (valid:", line->name, word);
    struct cursor cursor = {0};
    size_t offset;
    for (const struct option_row *row; (row = next_row(line, &cursor, &offset));)
        plain_print(stderr, " %s", row->name);
    fputs(" --help)\n", stderr);
    return OPTIONS_BAD;
}

/* Checks VALUE and stores it AT. */
static enum options_outcome store(const struct command_line *line, const struct option_row *row,
                                  const char *value, void *at)
{
    int64_t number;
    double real;
    char low[32], high[32];
    const char *suffix = row->type == OPTION_PERCENT ? "%" : "";
    bool needs_text = row->type == OPTION_TEXT || row->type == OPTION_REAL || row->type == OPTION_PERCENT;

    if (needs_text && !*value)
        return bad(line, "%s needs a value", row->name);
    switch (row->type) {
    case OPTION_FLAG: *(bool *)at = true; return OPTIONS_OK;
    case OPTION_NUMBER:
        if (!parse_number(value, &number) || number < row->min || number > row->max)
            return bad(line, "%s '%s' is not valid (a whole number from %" PRId64 " to %" PRId64 ")",
                       row->name, value, row->min, row->max);
        *(int64_t *)at = number;
        return OPTIONS_OK;
    case OPTION_REAL:
    case OPTION_PERCENT:
        if (parse_real(value, suffix, &real) && real >= (double)row->min && real <= (double)row->max) {
            *(double *)at = real;
            return OPTIONS_OK;
        }
        plain_print(stderr,
                    "loadtest %s: %s '%s' is not valid (a number from %" PRId64 "%s to %" PRId64 "%s)\n",
                    line->name, row->name, value, row->min, suffix, row->max, suffix);
        return OPTIONS_BAD;
    case OPTION_DURATION:
        if (!parse_duration(value, &number) || number < row->min || number > row->max)
            return bad(line, "%s '%s' is not valid (a duration such as 250ms, 2s or 1m, from %s to %s)",
                       row->name, value, duration_text(row->min, low), duration_text(row->max, high));
        *(int64_t *)at = number;
        return OPTIONS_OK;
    case OPTION_CHOICE:
        for (size_t i = 0; row->choices[i]; i++)
            if (strcmp(row->choices[i], value) == 0) {
                *(const char **)at = value;
                return OPTIONS_OK;
            }
        plain_print(stderr, "loadtest %s: %s '%s' is not valid (valid: ", line->name, row->name, value);
        print_choices(stderr, row);
        fputs(")\n", stderr);
        return OPTIONS_BAD;
    case OPTION_TEXT: *(const char **)at = value; return OPTIONS_OK;
    case OPTION_TEXTS: {
        struct texts *texts = at;
        if (texts->count == TEXTS_MAX)
            return bad(line, "%s was given more than %d times", row->name, TEXTS_MAX);
        texts->item[texts->count++] = value;
        return OPTIONS_OK;
    }
    }
    return OPTIONS_BAD;
}

enum options_outcome options_parse(const struct command_line *line, int argc, char **argv, void *settings,
                                   struct texts *ret_operands)
{
    struct texts operands = {.count = 0};
    bool only_operands = false;

    /* Help shows the defaults, so it is looked for before an option changes one. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(line, settings);
            return OPTIONS_HELP;
        }

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_operands && strcmp(word, "--") == 0) {
            only_operands = true;
            continue;
        }
        if (only_operands || word[0] != '-' || !word[1]) {
            if (operands.count == line->max_operands || operands.count == TEXTS_MAX)
                return line->max_operands
                           ? bad(line, "unexpected argument '%s' (expected: %s)", word, line->operands)
                           : bad(line, "unexpected argument '%s': an option starts with --", word);
            operands.item[operands.count++] = word;
            continue;
        }
        size_t length = strcspn(word, "=");
        size_t offset;
        const struct option_row *row = find_row(line, word, length, &offset);
        if (!row)
            return unknown_option(line, word);
        const char *value = word[length] ? word + length + 1 : NULL;
        if (row->type == OPTION_FLAG && value)
            return bad(line, "%s takes no value", row->name);
        if (row->type != OPTION_FLAG && !value) {
            if (++i == argc)
                return bad(line, "%s needs a value: %s", row->name, row->value);
            value = argv[i];
        }
        if (store(line, row, value, (char *)settings + offset) != OPTIONS_OK)
            return OPTIONS_BAD;
    }
    if (operands.count < line->min_operands)
        return bad(line, "an argument is missing (expected: %s)", line->operands);
    *ret_operands = operands;
    return OPTIONS_OK;
}
