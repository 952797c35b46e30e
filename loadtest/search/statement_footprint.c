/* A statement touches the tables whose names are among its words, and what the database ties to these. A text that has another word where a
 * function, a setting or a command could be counts as one that writes everything. */
#include "loadtest/search/statement_footprint.h"

#include "loadtest/sql/statement_words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Inheritance and partitions give one row two names. A sequence that two defaults count on ties their tables. */
const char TABLES_SQL[] =
    "WITH ours AS (SELECT c.oid, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND (n.nspname !~ '^pg_' OR n.nspname ~ '^pg_temp')"
    " AND n.nspname <> 'information_schema'),"
    " counts AS (SELECT d.refobjid AS sequence, a.adrelid AS counter FROM pg_depend d JOIN pg_attrdef a ON a.oid = d.objid"
    " WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> a.adrelid),"
    " numbered AS (SELECT a.attrelid, a.attnum, a.attname FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid"
    " AND d.adnum = a.attnum WHERE a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) ~ '^(nextval|gen_random_uuid)[(]')"
    " SELECT relname, '', 'table' FROM ours"
    " UNION ALL SELECT c.relname, '', 'unclear' FROM ours c WHERE EXISTS (SELECT FROM pg_inherits i"
    " WHERE c.oid IN (i.inhparent, i.inhrelid)) OR EXISTS (SELECT FROM counts one JOIN counts other USING (sequence)"
    " WHERE one.counter = c.oid AND other.counter <> c.oid) OR c.relkind IN ('f', 'm')"
    " UNION ALL SELECT child.relname, parent.relname, 'child' FROM pg_constraint o JOIN ours child ON child.oid = o.conrelid"
    " JOIN ours parent ON parent.oid = o.confrelid WHERE o.contype = 'f'"
    " UNION ALL SELECT c.relname, '', 'grows' FROM ours c WHERE c.relkind = 'r'"
    " AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype = 'x')"
    " AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)"
    " AND NOT EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid)"
    " AND NOT EXISTS (SELECT FROM pg_index i, unnest(i.indkey) k WHERE i.indrelid = c.oid AND i.indisunique"
    " AND NOT EXISTS (SELECT FROM numbered n WHERE n.attrelid = c.oid AND n.attnum = k))"
    " UNION ALL SELECT c.relname, n.attname, 'numbered' FROM ours c JOIN numbered n ON n.attrelid = c.oid";

static enum known_kind kind_named(const char *name)
{
    static const char *const KINDS[] = {[KNOWN_TABLE] = "table",
                                        [KNOWN_CHILD] = "child",
                                        [KNOWN_UNCLEAR] = "unclear",
                                        [KNOWN_GROWS] = "grows",
                                        [KNOWN_NUMBERED] = "numbered"};
    size_t i = 0;
    while (i < KNOWN_NUMBERED && strcmp(KINDS[i], name) != 0)
        i++;
    return (enum known_kind)i;
}

bool known_tables_add(struct known_tables *tables, const char *name, const char *other, const char *kind)
{
    struct known_table *grown = realloc(tables->item, (tables->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    tables->item = grown;
    struct known_table *table = &grown[tables->count++];
    *table = (struct known_table){.name = strdup(name), .other = strdup(other), .kind = kind_named(kind)};
    return table->name && table->other;
}

void known_tables_free(struct known_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++) {
        free(tables->item[i].name);
        free(tables->item[i].other);
    }
    free(tables->item);
    *tables = (struct known_tables){0};
}

/* ---- words ------------------------------------------------------------------------------------------------------------ */

static bool is_one_of(const struct sql_word *word, const char *const *texts)
{
    while (*texts && strcasecmp(word->text, *texts) != 0)
        texts++;
    return word->kind == SQL_NAME && *texts;
}

/* The first words of statements that touch tables by name only. */
static const char *const QUERIES[] = {"select", "insert", "update", "delete", "with", "values", NULL};
static const char *const CONTROLS[] = {"begin", "start",     "commit",  "end", "rollback",
                                       "abort", "savepoint", "release", NULL};
/* A statement with one of them writes, or locks, each table that it names. */
static const char *const WRITES[] = {"insert", "update", "delete", "merge", "into", "share", "lock", NULL};
/* What may stand before a bracket: words of SQL, and functions that only compute with their arguments, or with the time. A function of the
 * user's that has such a name is among the routines. */
static const char *const BEFORE_BRACKETS[] = {"select",
                                              "from",
                                              "where",
                                              "and",
                                              "or",
                                              "not",
                                              "in",
                                              "exists",
                                              "any",
                                              "all",
                                              "some",
                                              "as",
                                              "on",
                                              "when",
                                              "then",
                                              "else",
                                              "by",
                                              "having",
                                              "values",
                                              "set",
                                              "returning",
                                              "join",
                                              "using",
                                              "union",
                                              "except",
                                              "intersect",
                                              "conflict",
                                              "do",
                                              "limit",
                                              "like",
                                              "between",
                                              "row",
                                              "array",
                                              "numeric",
                                              "varchar",
                                              "char",
                                              "count",
                                              "sum",
                                              "min",
                                              "max",
                                              "avg",
                                              "bool_and",
                                              "bool_or",
                                              "coalesce",
                                              "nullif",
                                              "greatest",
                                              "least",
                                              "abs",
                                              "lower",
                                              "upper",
                                              "length",
                                              "concat",
                                              "cast",
                                              "round",
                                              "pg_sleep",
                                              "date_trunc",
                                              "extract",
                                              "update",
                                              "over",
                                              "case",
                                              "now",
                                              "clock_timestamp",
                                              "statement_timestamp",
                                              "gen_random_uuid",
                                              "to_char",
                                              "date_part",
                                              "age",
                                              "trim",
                                              "replace",
                                              "substring",
                                              "floor",
                                              "ceil",
                                              "md5",
                                              "format",
                                              "json_build_object",
                                              "jsonb_build_object",
                                              "json_agg",
                                              "jsonb_agg",
                                              "array_agg",
                                              "string_agg",
                                              "to_json",
                                              "to_jsonb",
                                              "row_to_json",
                                              "row_number",
                                              "filter",
                                              "interval",
                                              "timestamp",
                                              "timestamptz",
                                              "partition",
                                              NULL};

/* A system column, a system table, or a setting. Their names tell of other transactions, or of all. */
static bool tells_of_others(const struct sql_word *word)
{
    static const char *const NAMES[] = {
        "xmin", "xmax", "cmin", "cmax", "ctid", "tableoid", "information_schema", NULL};
    return is_one_of(word, NAMES) || (word->kind == SQL_NAME && strncasecmp(word->text, "pg_", 3) == 0 &&
                                      strcasecmp(word->text, "pg_sleep") != 0);
}

bool statement_isolates(const char *text)
{
    static const char *const NAMES[] = {"isolation", "serializable", "repeatable", NULL};
    struct sql_word word;
    while (sql_word_inside(&text, &word))
        if (is_one_of(&word, NAMES) || word.kind == SQL_UNKNOWN)
            return true;
    return false;
}

/* ---- tables ------------------------------------------------------------------------------------------------------------ */

/* What a statement does to a table that it names. */
enum access { ACCESS_READS, ACCESS_ADDS, ACCESS_WRITES };

/* The number of the table NAME; the number of tables if there is none. */
static uint64_t number_of(const struct known_tables *tables, const char *name)
{
    uint64_t i = 0;
    while (i < tables->count &&
           (tables->item[i].kind != KNOWN_TABLE || strcasecmp(tables->item[i].name, name) != 0))
        i++;
    return i;
}

/* A write can change or delete what refers to the row, and looks at what the row refers to. False: it is not clear what else. */
static bool add_table(struct footprint *footprint, const struct known_tables *tables, const char *name,
                      enum access access, unsigned depth)
{
    if (depth > tables->count) /* a circle of foreign keys */
        return true;
    for (size_t i = 0; i < tables->count;
         i++) { /* I: the number of the table in the row that says that there is one */
        const struct known_table *table = &tables->item[i];
        const bool is_it = strcasecmp(table->name, name) == 0,
                   is_parent = table->kind == KNOWN_CHILD && strcasecmp(table->other, name) == 0;
        if (is_it && table->kind == KNOWN_UNCLEAR)
            return false;
        if (is_it && table->kind == KNOWN_TABLE && access == ACCESS_ADDS)
            footprint_add_new(footprint, i);
        else if (is_it && table->kind == KNOWN_TABLE)
            footprint_add(footprint, access == ACCESS_WRITES, i, ALL_ROWS);
        else if (is_it && table->kind == KNOWN_CHILD && access != ACCESS_READS)
            footprint_add(footprint, false, number_of(tables, table->other), ALL_ROWS);
        else if (is_parent && access == ACCESS_WRITES && !is_it &&
                 (depth >= 8 || !add_table(footprint, tables, table->name, ACCESS_WRITES, depth + 1)))
            return false;
    }
    return true;
}

static bool is_known(const struct known_tables *tables, const char *name, enum known_kind kind,
                     const char *other)
{
    for (size_t i = 0; i < tables->count; i++)
        if (tables->item[i].kind == kind && strcasecmp(tables->item[i].name, name) == 0 &&
            strcasecmp(tables->item[i].other, other) == 0)
            return true;
    return false;
}

static bool is_sign(const struct sql_word *word, char sign)
{
    return word->kind == SQL_SIGN && *word->text == sign;
}

/* The statement at AT is an INSERT INTO a table that grows, with a list of columns and VALUES, and nothing in it depends on other rows. */
static bool only_adds(const struct known_tables *tables, const char *at)
{
    static const char *const INSERT[] = {"insert", NULL}, *const INTO[] = {"into", NULL},
                             *const VALUES[] = {"values", NULL},
                             *const LOOKS[] = {"select", "conflict", "with", "table", NULL};
    struct sql_word word, table;
    if (tables->numbers_matter || !sql_word_next(&at, &word) || !is_one_of(&word, INSERT) ||
        !sql_word_next(&at, &word) || !is_one_of(&word, INTO))
        return false;
    if (!sql_word_next(&at, &table) || !sql_word_next(&at, &word))
        return false;
    if (table.kind != SQL_NAME || !is_known(tables, table.text, KNOWN_GROWS, "") || !is_sign(&word, '('))
        return false;
    while (sql_word_next(&at, &word) && !is_sign(&word, ')'))
        if (word.kind == SQL_UNKNOWN ||
            (word.kind == SQL_NAME && is_known(tables, table.text, KNOWN_NUMBERED, word.text)))
            return false;
    if (!sql_word_next(&at, &word) || !is_one_of(&word, VALUES))
        return false;
    while (sql_word_next(&at, &word) && !is_sign(&word, ';'))
        if (is_one_of(&word, LOOKS))
            return false;
    return true;
}

/* Reads the words of one statement up to its semicolon: does it write, and can it do what they do not tell? */
static bool look(const char **at, bool *ret_writes, bool *ret_has_words)
{
    static const char *const INTO[] = {"into", NULL};
    struct sql_word word, before = {.kind = SQL_END};
    bool is_clear = true, controls = false, behind_into = false; /* BEFORE is a table */
    *ret_writes = *ret_has_words = false;
    while (sql_word_next(at, &word)) {
        if (word.kind == SQL_SIGN && *word.text == ';')
            break;
        if (!*ret_has_words) {
            controls = is_one_of(&word, CONTROLS);
            is_clear &= controls || is_one_of(&word, QUERIES);
        }
        *ret_has_words = true;
        *ret_writes |= is_one_of(&word, WRITES);
        is_clear &= word.kind != SQL_UNKNOWN && !tells_of_others(&word);
        if (word.kind == SQL_SIGN && *word.text == '(' && before.kind == SQL_NAME && !behind_into)
            is_clear &= is_one_of(&before, BEFORE_BRACKETS);
        behind_into = is_one_of(&before, INTO);
        before = word;
    }
    return is_clear;
}

struct footprint statement_footprint(const struct known_tables *tables, const struct routines *routines,
                                     const char *text)
{
    struct footprint footprint = {0};
    bool is_clear = !statement_runs_routine(routines, text) && !statement_isolates(text), has_words = true;
    while (is_clear && *text) {
        const char *at = text;
        bool writes;
        struct sql_word word;
        is_clear = look(&text, &writes, &has_words);
        const enum access access = !writes                 ? ACCESS_READS
                                   : only_adds(tables, at) ? ACCESS_ADDS
                                                           : ACCESS_WRITES;
        while (is_clear && at < text && sql_word_next(&at, &word))
            is_clear = word.kind != SQL_NAME || add_table(&footprint, tables, word.text, access, 0);
        if (!has_words)
            break;
    }
    if (!is_clear)
        footprint_add_all(&footprint);
    return footprint;
}
