/* Tells which statements are not atomic at READ COMMITTED, by the words that they and the functions that they call consist of. */
#include "loadtest/search/statement_inside.h"

#include "loadtest/sql/statement_words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NESTED_MAX = 4 };

const char ROUTINES_SQL[] =
    "WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'),"
    " tables AS (SELECT c.oid, c.relname FROM pg_class c JOIN ours ON ours.oid = c.relnamespace),"
    " uses AS (SELECT d.classid, d.objid, p.proname FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid"
    " WHERE d.refclassid = 'pg_proc'::regclass),"
    " fires AS (SELECT t.tgrelid, p.oid, p.proname, t.tgdeferrable FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
    " WHERE NOT t.tgisinternal)"
    " SELECT p.proname, pg_get_functiondef(p.oid), CASE p.provolatile WHEN 'v' THEN 'function' ELSE 'read' END"
    " FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"
    " WHERE p.prokind IN ('f', 'p') AND p.pronamespace IN (SELECT oid FROM ours)"
    " AND l.lanname NOT IN ('c', 'internal') AND NOT EXISTS (SELECT FROM pg_depend d"
    " WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')"
    " UNION ALL SELECT c.relname, quote_ident(f.proname), 'trigger' FROM fires f JOIN pg_class c ON c.oid = f.tgrelid"
    " UNION ALL SELECT c.relname, quote_ident(f.proname), 'deferred' FROM fires f JOIN pg_class c ON c.oid = f.tgrelid"
    " WHERE f.tgdeferrable"
    /* A constraint of a table or of a column's domain, and a default. */
    " UNION ALL SELECT c.relname, quote_ident(u.proname), 'trigger' FROM uses u JOIN pg_constraint o ON o.oid = u.objid"
    " JOIN tables c ON c.oid = o.conrelid WHERE u.classid = 'pg_constraint'::regclass"
    " UNION ALL SELECT c.relname, quote_ident(u.proname), 'trigger' FROM uses u JOIN pg_constraint o ON o.oid = u.objid"
    " JOIN pg_attribute a ON a.atttypid = o.contypid JOIN tables c ON c.oid = a.attrelid"
    " WHERE u.classid = 'pg_constraint'::regclass"
    " UNION ALL SELECT c.relname, quote_ident(u.proname), 'trigger' FROM uses u JOIN pg_attrdef a ON a.oid = u.objid"
    " JOIN tables c ON c.oid = a.adrelid WHERE u.classid = 'pg_attrdef'::regclass"
    /* A partition with a trigger that its table has not, and what a foreign key deletes or changes together with its table. */
    " UNION ALL SELECT c.relname, quote_ident(child.relname), 'trigger' FROM pg_inherits i JOIN tables c ON c.oid = i.inhparent"
    " JOIN tables child ON child.oid = i.inhrelid WHERE EXISTS (SELECT FROM fires f WHERE f.tgrelid = child.oid"
    " AND NOT EXISTS (SELECT FROM fires g WHERE g.tgrelid = c.oid AND g.oid = f.oid))"
    " UNION ALL SELECT c.relname, quote_ident(child.relname), 'trigger' FROM pg_constraint o JOIN tables c ON c.oid = o.confrelid"
    " JOIN tables child ON child.oid = o.conrelid WHERE o.contype = 'f'"
    " AND (o.confdeltype IN ('c', 'n', 'd') OR o.confupdtype IN ('c', 'n', 'd'))"
    " UNION ALL SELECT c.relname, concat(pg_get_expr(p.polqual, p.polrelid), ' ', pg_get_expr(p.polwithcheck, p.polrelid)),"
    " 'read' FROM pg_policy p JOIN tables c ON c.oid = p.polrelid"
    " UNION ALL SELECT c.relname, '', 'rule' FROM pg_rewrite r JOIN tables c ON c.oid = r.ev_class"
    " WHERE r.rulename <> '_RETURN'"
    " UNION ALL SELECT c.relname, pg_get_viewdef(c.oid), 'read' FROM tables c JOIN pg_class k ON k.oid = c.oid"
    " WHERE k.relkind = 'v'";

static enum routine_kind kind_of(const char *kind)
{
    static const char *const KINDS[] = {
        [ROUTINE_FUNCTION] = "function", [ROUTINE_READ] = "read", [ROUTINE_TRIGGER] = "trigger",
        [ROUTINE_DEFERRED] = "deferred", [ROUTINE_RULE] = "rule",
    };
    size_t i = 0;
    while (i + 1 < sizeof KINDS / sizeof *KINDS && strcmp(kind, KINDS[i]) != 0)
        i++;
    return (enum routine_kind)i;
}

bool routines_add(struct routines *routines, const char *name, const char *body, const char *kind)
{
    struct routine *grown = realloc(routines->item, (routines->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    routines->item = grown;
    struct routine *routine = &grown[routines->count++];
    *routine = (struct routine){.name = strdup(name), .body = strdup(body), .kind = kind_of(kind)};
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

/* What the routines do that a text calls. */
struct called {
    unsigned snapshots;
    bool ends, reads,
        defers; /* they end the transaction; read with the statement's snapshot; run in the COMMIT */
};

/* WRITES: what calls TEXT writes. */
static struct called called(const struct routines *routines, const char *text, bool writes, unsigned depth)
{
    struct called all = {0};
    writes |= listen(text).writes;
    for (size_t i = 0; i < routines->count && depth < NESTED_MAX; i++) {
        const struct routine *routine = &routines->item[i];
        bool fires = routine->kind >= ROUTINE_TRIGGER;
        if ((fires && !writes) || !names(text, routine->name) || text == routine->body)
            continue;
        const struct said said = listen(routine->body);
        const struct called inner = called(routines, routine->body,
                                           writes && routine->kind != ROUTINE_FUNCTION, depth + 1);
        if (routine->kind == ROUTINE_DEFERRED) {
            all.defers |= inner.snapshots > 0;
            continue;
        }
        all.ends |= inner.ends || (routine->kind == ROUTINE_FUNCTION && said.ends_transaction);
        all.reads |= inner.reads || (routine->kind == ROUTINE_READ && writes && said.touches);
        all.defers |= inner.defers;
        all.snapshots += inner.snapshots + (routine->kind == ROUTINE_RULE       ? 2
                                            : routine->kind == ROUTINE_FUNCTION ? said.snapshots
                                                                                : 0);
    }
    return all;
}

struct statement_inside statement_inside(const struct routines *routines, const char *text)
{
    static const char *const IN_A_BLOCK[] = {"select", "insert", "update", "delete",  "merge", "with",
                                             "call",   "do",     "values", "execute", NULL};
    static const char *const READS_BESIDE[] = {"update", "merge", NULL};
    const struct said said = listen(text);
    const struct called inner = called(routines, text, false, 0);
    bool is_do = strcasecmp(said.first, "do") == 0, is_execute = strcasecmp(said.first, "execute") == 0;
    /* A lock that is released before the COMMIT of the text protects nothing of it. */
    unsigned statements = said.statements + (said.statements > 0 ? said.unlocks : 0);
    unsigned outside = is_do ? said.snapshots : statements > 1 ? statements : said.touches ? 1 : 0;
    bool reads_more = said.selects || said.uses || inner.reads ||
                      (is_one_of(said.first, READS_BESIDE) && names(text, "from"));
    bool calls = inner.snapshots > 0 || is_do || is_execute || (said.writes && reads_more) ||
                 (statements > 1 && said.selects);
    return (struct statement_inside){
        .splits = calls || statements > 1,
        .calls = calls,
        .many = statements > 1,
        .runs = inner.snapshots > 0,
        .reads_and_writes = said.writes && reads_more,
        .can_split = !said.ends_transaction && !inner.ends && is_one_of(said.first, IN_A_BLOCK),
        /* What the prepared statement calls is not in the text. */
        .several = outside + inner.snapshots > 1 || (is_execute && routines->count > 0),
    };
}

bool statement_defers(const struct routines *routines, const char *text)
{
    return called(routines, text, false, 0).defers;
}

bool statement_runs_routine(const struct routines *routines, const char *text)
{
    for (size_t i = 0; i < routines->count; i++)
        if (names(text, routines->item[i].name))
            return true;
    return false;
}
