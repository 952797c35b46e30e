/* Says why a schedule of requests went wrong. It knows just enough SQL to tell which table a statement reads or writes. */
#include "loadtest/own/schedules/cause.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 64 };

enum access { ACCESS_NONE, ACCESS_READ, ACCESS_LOCK, ACCESS_UPDATE, ACCESS_INSERT };

struct statement {
    enum access access; /* the strongest one */
    char table[WORD_MAX];
};

/* ---- statements -------------------------------------------------------------------------------------------------------------- */

/* Reads the next name, keyword or sign other than a quoted text. False: there is none. */
static bool next_word(const char **at, char ret_word[static WORD_MAX])
{
    const char *text = *at;
    size_t length = 0;
    while (*text == ' ' || *text == '\'') {
        const char *end = *text == '\'' ? strchr(text + 1, '\'') : text;
        if (!end)
            return false;
        text = end + 1;
    }
    while (isalnum((unsigned char)*text) || *text == '_' || *text == '.' || *text == '"' ||
           (unsigned char)*text > 127) {
        if (*text != '"' && length + 1 < WORD_MAX)
            ret_word[length++] = (char)tolower((unsigned char)*text);
        text++;
    }
    if (length == 0 && *text)
        ret_word[length++] = *text++;
    ret_word[length] = '\0';
    *at = text;
    return length > 0;
}

static void keep_table(struct statement *statement, enum access access, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (access <= statement->access || !isalpha((unsigned char)*name))
        return;
    statement->access = access;
    snprintf(statement->table, sizeof statement->table, "%s", dot ? dot + 1 : name);
}

/* `SELECT … FROM product … FOR UPDATE`, `UPDATE product`, `INSERT INTO`, `DELETE FROM`, also inside WITH. */
static struct statement statement_of(const char *text)
{
    struct statement statement = {0};
    char before[WORD_MAX] = "", word[WORD_MAX];
    while (next_word(&text, word)) {
        if (strcmp(before, "from") == 0)
            keep_table(&statement, ACCESS_READ, word);
        else if (strcmp(before, "into") == 0)
            keep_table(&statement, ACCESS_INSERT, word);
        else if (strcmp(before, "update") == 0 && strcmp(word, "set") != 0 && strcmp(word, "only") != 0)
            keep_table(&statement, ACCESS_UPDATE, word);
        if (strcmp(before, "for") == 0 && statement.access == ACCESS_READ &&
            (strcmp(word, "update") == 0 || strcmp(word, "no") == 0 || strcmp(word, "share") == 0)) {
            statement.access = ACCESS_LOCK;
            return statement;
        }
        if (strcmp(before, "delete") == 0 && strcmp(word, "from") == 0 && next_word(&text, word))
            keep_table(&statement, ACCESS_UPDATE, word);
        if (strcmp(word, "only") != 0)
            snprintf(before, sizeof before, "%s", word);
    }
    return statement;
}

/* ---- the cause ------------------------------------------------------------------------------------------------------------------- */

/* Numbers of steps: READER reads a table, then another request CHANGES it, and then the reader's request WRITES. */
struct stale_read {
    size_t reads, changes, writes;
};

static size_t find_write(const struct run_record *record, const struct statement *statements, size_t after,
                         unsigned actor, const char *table)
{
    size_t found = record->count;
    for (size_t i = after; i < record->count; i++) {
        if (record->steps[i].actor != actor || statements[i].access < ACCESS_UPDATE)
            continue;
        if (strcmp(statements[i].table, table) == 0)
            return i;
        found = found < record->count ? found : i;
    }
    return found;
}

static bool find_stale_read(const struct run_record *record, const struct statement *statements,
                            struct stale_read *ret_found)
{
    for (size_t i = 0; i < record->count; i++) {
        if (statements[i].access != ACCESS_READ)
            continue;
        for (size_t j = i + 1; j < record->count; j++) {
            if (record->steps[j].actor == record->steps[i].actor || statements[j].access < ACCESS_UPDATE ||
                strcmp(statements[j].table, statements[i].table) != 0)
                continue;
            size_t writes = find_write(record, statements, j + 1, record->steps[i].actor,
                                       statements[i].table);
            if (writes == record->count)
                continue;
            *ret_found = (struct stale_read){i, j, writes};
            return true;
        }
    }
    return false;
}

static char name_of(const struct run_record *record, size_t step)
{
    return (char)('A' + (char)record->steps[step].actor);
}

/* The fault that the record has, and what it shows. False: it has none, or one that explains nothing of this verdict. */
static bool fault_explains(const struct run_record *record, enum verdict verdict,
                           char ret_text[static CAUSE_TEXT])
{
    size_t at = 0;
    while (at < record->count && record->steps[at].kind == TRANSITION_STEP)
        at++;
    if (at == record->count)
        return false;
    char name = name_of(record, at);
    switch (record->steps[at].kind) {
    case TRANSITION_EXPIRE:
        snprintf(
            ret_text, CAUSE_TEXT,
            "The key that %c held in Redis expired (%zu) before %c had finished, so another request took the lock, "
            "and both sold. A lock that expires cannot protect the stock alone: let the row decide "
            "too, with a fencing token or a condition in the UPDATE.",
            name, at + 1, name);
        return verdict != VERDICT_STUCK;
    case TRANSITION_CRASH:
        snprintf(
            ret_text, CAUSE_TEXT,
            "%c crashed (%zu) after it had done only a part of the order. Change the stock and insert the order in "
            "one transaction, and let each lock expire.",
            name, at + 1);
        return true;
    case TRANSITION_CUT:
        snprintf(
            ret_text, CAUSE_TEXT,
            "The order of %c was committed (%zu), but the connection was lost before the answer. Before the service tries again or "
            "refuses, it must look for the order, for instance by an idempotency key.",
            name, at + 1);
        return true;
    default: return false;
    }
}

void cause_of(const struct run_record *record, enum verdict verdict, char ret_text[static CAUSE_TEXT])
{
    static struct statement statements[RUN_STEPS_MAX];
    struct stale_read found;
    for (size_t i = 0; i < record->count; i++)
        statements[i] = statement_of(record->steps[i].text);
    if (fault_explains(record, verdict, ret_text))
        return;
    if (verdict == VERDICT_STUCK) {
        snprintf(
            ret_text, CAUSE_TEXT,
            "No request could continue: each remaining request waits for another one. Take locks in the same "
            "sequence everywhere, and release each lock on every path.");
    } else if (verdict == VERDICT_ANSWERS_LOST) {
        snprintf(
            ret_text, CAUSE_TEXT,
            "The service acknowledged an order that does not exist, or refused a request whose order exists. Answer "
            "only after COMMIT has succeeded.");
    } else if (find_stale_read(record, statements, &found)) {
        bool same = strcmp(statements[found.writes].table, statements[found.reads].table) == 0;
        snprintf(
            ret_text, CAUSE_TEXT,
            "%c read %s (statement %zu) before %c changed it (%zu), and %s (%zu). Read with SELECT … FOR UPDATE, or "
            "check the stock in the UPDATE itself.",
            name_of(record, found.reads), statements[found.reads].table, found.reads + 1,
            name_of(record, found.changes), found.changes + 1,
            same ? "then wrote a value that it computed from the old one"
                 : "then sold because of the old value",
            found.writes + 1);
    } else {
        snprintf(
            ret_text, CAUSE_TEXT,
            "No request read a table that another one changed before it wrote. So the service decides from something else, such as "
            "its memory, a cache or another server.");
    }
}
