/* Tells which statements are not atomic at READ COMMITTED, by the words that they and the functions that they call consist of. */
#include "loadtest/explore/core/statement_inside.h"

#include "loadtest/own/sql/statement_words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NESTED_MAX = 4 };

const char ROUTINES_SQL[] =
    "WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema')"
    " SELECT p.proname, pg_get_functiondef(p.oid), 'function' FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"
    " WHERE p.prokind IN ('f', 'p') AND p.pronamespace IN (SELECT oid FROM ours) AND p.provolatile = 'v'"
    " AND l.lanname NOT IN ('c', 'internal') AND NOT EXISTS (SELECT FROM pg_depend d"
    " WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')"
    " UNION ALL SELECT c.relname, p.proname, 'trigger' FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
    " JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal"
    " UNION ALL SELECT c.relname, '', 'rule' FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class"
    " WHERE r.rulename <> '_RETURN' AND c.relnamespace IN (SELECT oid FROM ours)"
    " UNION ALL SELECT c.relname, pg_get_viewdef(c.oid), 'view' FROM pg_class c WHERE c.relkind = 'v'"
    " AND c.relnamespace IN (SELECT oid FROM ours)";

bool routines_add(struct routines *routines, const char *name, const char *body, const char *kind)
{
    struct routine *grown = realloc(routines->item, (routines->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    routines->item = grown;
    struct routine *routine = &grown[routines->count++];
    *routine = (struct routine){.name = strdup(name),
                                .body = strdup(body),
                                .is_trigger = strcmp(kind, "trigger") == 0,
                                .is_rule = strcmp(kind, "rule") == 0};
    return routine->name && routine->body;
}

void routines_free(struct routines *routines)
{
    for (size_t i = 0; i < routines->count; i++) {
        free(routines->item[i].name);
        free(routines->item[i].body);
    }
    free(routines->item);
    *routines = (struct routines){0};
}

/* ---- words ------------------------------------------------------------------------------------------------------------ */

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcasecmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

/* What the words of a text say. */
struct said {
    char first[SQL_WORD];
    unsigned statements; /* apart from those that only change the session */
    unsigned unlocks;    /* statements that only release advisory locks */
    unsigned snapshots;  /* statements that read or change rows, at least; one subquery counts as one more */
    bool writes, selects, touches, uses, ends_transaction;
};

static void hear(struct said *said, const char *before, const char *word)
{
    static const char *const NO_STATEMENT[] = {"for",    "do",    "on", "key",     "of",
                                               "before", "after", "or", "instead", NULL};
    static const char *const WRITES[] = {"update", "delete", "merge", "truncate", NULL};
    static const char *const READS[] = {"select", "perform", "copy", NULL};
    bool changes = is_one_of(word, WRITES) && !is_one_of(before, NO_STATEMENT),
         reads = is_one_of(word, READS), runs_text = strcasecmp(word, "execute") == 0;
    said->snapshots += changes || reads ? 1 : runs_text ? 2 : 0;
    said->writes |= changes || strcasecmp(word, "insert") == 0;
    said->selects |= strcasecmp(word, "select") == 0;
    said->touches |= changes || strcasecmp(word, "from") == 0;
    said->uses |= strcasecmp(word, "using") == 0;
    said->ends_transaction |= strcasecmp(word, "commit") == 0 || strcasecmp(word, "rollback") == 0;
}

/* Counts the statement that begins with FIRST, if that is not empty. SECOND: its second word. */
static void count_statement(struct said *said, const char *first, const char *second)
{
    static const char *const SESSION[] = {
        "begin", "start",  "commit",   "end",   "rollback",  "set",     "show",       "reset", "discard",
        "close", "listen", "unlisten", "abort", "savepoint", "release", "deallocate", NULL};
    static const char UNLOCK[] = "pg_advisory_unlock";
    if (strncasecmp(second, UNLOCK, sizeof UNLOCK - 1) == 0)
        said->unlocks++;
    else
        said->statements += *first && !is_one_of(first, SESSION);
}

static struct said listen(const char *text)
{
    struct said said = {0};
    struct sql_word word;
    char first[SQL_WORD] = "", second[SQL_WORD] = "", before[SQL_WORD] = "";
    while (sql_word_inside(&text, &word)) {
        if (word.kind == SQL_SIGN && *word.text == ';') {
            count_statement(&said, first, second);
            *first = *second = '\0';
        }
        if (word.kind != SQL_NAME)
            continue;
        hear(&said, before, word.text);
        if (!*said.first)
            memcpy(said.first, word.text, SQL_WORD);
        if (!*first || !*second)
            memcpy(*first ? second : first, word.text, SQL_WORD);
        memcpy(before, word.text, SQL_WORD);
    }
    count_statement(&said, first, second);
    return said;
}

static bool names(const char *text, const char *name)
{
    struct sql_word word;
    while (sql_word_inside(&text, &word))
        if (word.kind == SQL_NAME && strcasecmp(word.text, name) == 0)
            return true;
    return false;
}

/* ---- functions and triggers --------------------------------------------------------------------------------------------- */

/* The snapshots of all that a text calls, and whether a part of it ends the transaction. */
static unsigned called(const struct routines *routines, const char *text, unsigned depth, bool *ret_ends)
{
    bool writes = listen(text).writes;
    unsigned snapshots = 0;
    for (size_t i = 0; i < routines->count && depth < NESTED_MAX; i++) {
        const struct routine *routine = &routines->item[i];
        bool fires = routine->is_trigger || routine->is_rule;
        if ((fires && !writes) || !names(text, routine->name) || text == routine->body)
            continue;
        const struct said said = listen(routine->body);
        *ret_ends |= !fires && said.ends_transaction;
        snapshots += routine->is_rule ? 2 : routine->is_trigger ? 0 : said.snapshots;
        snapshots += called(routines, routine->body, depth + 1, ret_ends);
    }
    return snapshots;
}

struct statement_inside statement_inside(const struct routines *routines, const char *text)
{
    static const char *const IN_A_BLOCK[] = {"select", "insert", "update", "delete", "merge",
                                             "with",   "call",   "do",     "values", NULL};
    static const char *const READS_BESIDE[] = {"update", "merge", NULL};
    const struct said said = listen(text);
    bool is_do = strcasecmp(said.first, "do") == 0, ends = said.ends_transaction;
    unsigned inside = called(routines, text, 0, &ends);
    /* A lock that is released before the COMMIT of the text protects nothing of it. */
    unsigned statements = said.statements + (said.statements > 0 ? said.unlocks : 0);
    unsigned outside = is_do ? said.snapshots : statements > 1 ? statements : said.touches ? 1 : 0;
    bool reads_more = said.selects || said.uses ||
                      (is_one_of(said.first, READS_BESIDE) && names(text, "from"));
    bool calls = inside > 0 || is_do || (said.writes && reads_more);
    return (struct statement_inside){
        .splits = calls || statements > 1,
        .calls = calls,
        .can_split = !ends && is_one_of(said.first, IN_A_BLOCK),
        .several = outside + inside > 1,
    };
}

bool statement_runs_routine(const struct routines *routines, const char *text)
{
    for (size_t i = 0; i < routines->count; i++)
        if (names(text, routines->item[i].name))
            return true;
    return false;
}
