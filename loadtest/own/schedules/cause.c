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

/* Does this statement end a transaction? RET_FAILED: it was rolled back. */
static bool ends_transaction(const struct run_step *step, bool *ret_failed)
{
    const char *text = step->text;
    char word[WORD_MAX] = "";
    *ret_failed = false;
    if (step->kind != TRANSITION_STEP || !next_word(&text, word))
        return false;
    bool commits = strcmp(word, "commit") == 0 || strcmp(word, "end") == 0,
         fails = strcmp(word, "rollback") == 0 || strcmp(word, "abort") == 0;
    while (fails && next_word(&text, word))
        fails = strcmp(word, "to") != 0; /* a savepoint does not end it */
    *ret_failed = fails || (commits && strcmp(step->answer, "ROLLBACK") == 0);
    return commits || fails || step->has_stock;
}

/* The step from which others see the change of step WRITE: where its transaction ends. The number of steps: it was rolled back. */
static size_t visible_from(const struct run_record *record, size_t write)
{
    bool failed;
    for (size_t i = write; i < record->count; i++)
        if (record->steps[i].actor == record->steps[write].actor &&
            ends_transaction(&record->steps[i], &failed))
            return failed ? record->count : i;
    return write;
}

/* The step numbers of a stale read: a request READS a table before another request COMMITs its CHANGE of that table. The first request
 * WRITES as well. */
struct stale_read {
    size_t reads, changes, commit, writes;
};

/* Finds the write of the reader: one that comes after the change, or that becomes visible after it. Prefers a write to the same table. */
static bool find_write(const struct run_record *record, const struct statement *statements,
                       struct stale_read *found)
{
    bool has_found = false;
    for (size_t i = 0; i < record->count; i++) {
        if (record->steps[i].actor != record->steps[found->reads].actor ||
            statements[i].access < ACCESS_UPDATE)
            continue;
        size_t visible = visible_from(record, i);
        if (visible == record->count ||
            (visible < found->commit && (i < found->changes || found->changes < found->reads)))
            continue;
        bool same = strcmp(statements[i].table, statements[found->reads].table) == 0;
        if (same || !has_found)
            found->writes = i;
        has_found = true;
        if (same)
            break;
    }
    return has_found;
}

static bool find_stale_read(const struct run_record *record, const struct statement *statements,
                            struct stale_read *ret_found)
{
    for (size_t i = 0; i < record->count; i++) {
        if (statements[i].access != ACCESS_READ)
            continue;
        for (size_t j = 0; j < record->count; j++) {
            if (record->steps[j].actor == record->steps[i].actor || statements[j].access < ACCESS_UPDATE ||
                strcmp(statements[j].table, statements[i].table) != 0)
                continue;
            *ret_found = (struct stale_read){i, j, visible_from(record, j), 0};
            if (i < ret_found->commit && ret_found->commit < record->count &&
                find_write(record, statements, ret_found))
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

static void say_stale_read(const struct run_record *record, const struct statement *statements,
                           const struct stale_read *found, char ret_text[static CAUSE_TEXT])
{
    const char *table = statements[found->reads].table;
    char reader = name_of(record, found->reads), other = name_of(record, found->changes), change[80],
         write[120];
    if (found->reads < found->changes)
        snprintf(change, sizeof change, "%c changed it (%zu)", other, found->changes + 1);
    else
        snprintf(change, sizeof change, "the change of %c (%zu) was committed (%zu)", other,
                 found->changes + 1, found->commit + 1);
    if (found->writes < found->reads)
        snprintf(write, sizeof write, "committed its own change (%zu) without seeing the change of %c",
                 found->writes + 1, other);
    else
        snprintf(write, sizeof write, "then %s (%zu)",
                 strcmp(statements[found->writes].table, table) == 0
                     ? "wrote a value that it computed from the old one"
                     : "sold because of the old value",
                 found->writes + 1);
    snprintf(ret_text, CAUSE_TEXT, "%c read %s (statement %zu) before %s, and %s. %s", reader, table,
             found->reads + 1, change, write,
             statements[found->changes].access == ACCESS_INSERT
                 ? "Before the read, lock a row that all these requests share, or use SERIALIZABLE."
                 : "Read with SELECT … FOR UPDATE, or check the stock in the UPDATE itself.");
}

/* The requests ran one after the other. */
static bool is_serial(const struct run_record *record)
{
    unsigned seen = 0;
    for (size_t i = 0; i < record->count; i++) {
        unsigned actor = 1U << record->steps[i].actor;
        if (record->steps[i].kind != TRANSITION_STEP ||
            (seen & actor && i > 0 && record->steps[i - 1].actor != record->steps[i].actor))
            return false;
        seen |= actor;
    }
    return (seen & (seen - 1)) != 0;
}

/* The step at which the gate held the COMMIT of a statement outside a transaction, while another request acted. The number of steps: none. */
static size_t find_overtaken(const struct run_record *record, size_t *ret_statement)
{
    for (size_t i = 1; i < record->count; i++) {
        size_t before = i;
        if (strncmp(record->steps[i].text, "COMMIT (of", 10) != 0)
            continue;
        while (before-- > 0 && record->steps[before].actor != record->steps[i].actor)
            continue;
        if (before + 1 < i) {
            *ret_statement = before;
            return i;
        }
    }
    return record->count;
}

static bool say_overtaken(const struct run_record *record, char ret_text[static CAUSE_TEXT])
{
    size_t statement = 0, commit = find_overtaken(record, &statement);
    if (commit == record->count)
        return false;
    snprintf(
        ret_text, CAUSE_TEXT,
        "%c acted before %c had committed (%zu) what its statement %zu did, and read the state before it. A function, a trigger or "
        "INSERT … SELECT is not atomic at READ COMMITTED. Let it lock a row that all requests share before it reads, or change the stock "
        "with a condition in the UPDATE.",
        name_of(record, statement + 1), name_of(record, commit), commit + 1, statement + 1);
    return true;
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
    } else if (is_serial(record)) {
        snprintf(
            ret_text, CAUSE_TEXT,
            "This happens even if the requests run one after the other, so it needs no concurrency. The check of one request is wrong: "
            "for example, it checks each line of an order alone, or leaves an order behind that it refused.");
    } else if (say_overtaken(record, ret_text)) {
        return;
    } else if (find_stale_read(record, statements, &found)) {
        say_stale_read(record, statements, &found, ret_text);
    } else {
        snprintf(
            ret_text, CAUSE_TEXT,
            "The command did not recognize the cause in the statements. Compare the reads in the columns with the "
            "changes of the other requests. If the statements do not explain the result, the service bases its decision on "
            "something else, such as its memory, a cache or another server.");
    }
}
