/* What a statement does to tables. It knows just enough SQL to tell clauses apart; what it does not know it leaves out. */
#include "loadtest/sql/statement_shape.h"

#include <stdio.h>
#include <string.h>

enum { LEVELS = 16 };

enum clause { CLAUSE_OTHER, CLAUSE_FROM, CLAUSE_SET, CLAUSE_WHERE, CLAUSE_LOCK };

/* A pair of brackets, or the statement itself. */
struct level {
    enum clause clause;
    unsigned query;    /* of its SELECT */
    bool queries;      /* it has SELECT, UPDATE or DELETE, so FROM names tables: that of extract() does not */
    bool updates;      /* UPDATE or DO UPDATE, so SET and WHERE count */
    bool wants_table;  /* the next name is one */
    bool wants_column; /* in CLAUSE_SET */
    size_t last_use;   /* the table whose alias may follow; SHAPE_USES: none */
    enum access access; /* of the next table */
};

struct parser {
    struct statement_shape *shape;
    struct level levels[LEVELS];
    size_t depth;
    unsigned queries;
    struct sql_word before; /* the word before */
    size_t words;
};

static bool is(const struct sql_word *word, const char *text)
{
    return (word->kind == SQL_NAME || word->kind == SQL_SIGN) && strcmp(word->text, text) == 0;
}

static bool is_one_of(const struct sql_word *word, const char *const *texts)
{
    while (*texts && !is(word, *texts))
        texts++;
    return *texts != NULL;
}

static void add_use(struct parser *parser, struct level *level, const char *name)
{
    struct statement_shape *shape = parser->shape;
    level->last_use = shape->use_count;
    level->wants_table = false;
    if (shape->use_count == SHAPE_USES) {
        shape->unknown = true;
        return;
    }
    struct table_use *use = &shape->uses[shape->use_count++];
    *use = (struct table_use){.access = level->access, .query = level->query};
    snprintf(use->table, sizeof use->table, "%s", name);
    snprintf(use->alias, sizeof use->alias, "%s", name);
}

/* FOR UPDATE, FOR NO KEY UPDATE and FOR SHARE lock the tables of their SELECT, or those that OF names. FOR KEY SHARE does not keep others
 * from changing the stock. */
static void lock_tables(struct parser *parser, const struct level *level, const char *only)
{
    for (size_t i = 0; i < parser->shape->use_count; i++) {
        struct table_use *use = &parser->shape->uses[i];
        if (use->query == level->query && use->access <= ACCESS_LOCK)
            use->access = !only || strcmp(use->alias, only) == 0 ? ACCESS_LOCK : ACCESS_READ;
    }
}

/* Without the other tables that an earlier name in the list of OF has unlocked. */
static void lock_one_more(struct parser *parser, const struct level *level, const char *name)
{
    for (size_t i = 0; i < parser->shape->use_count; i++) {
        struct table_use *use = &parser->shape->uses[i];
        if (use->query == level->query && use->access == ACCESS_READ && strcmp(use->alias, name) == 0)
            use->access = ACCESS_LOCK;
    }
}

static void read_lock(struct parser *parser, struct level *level, const struct sql_word *word)
{
    if (is(&parser->before, "of"))
        lock_tables(parser, level, word->text);
    else if (is(&parser->before, ",") && word->kind == SQL_NAME)
        lock_one_more(parser, level, word->text);
    else if (is(word, "locked"))
        parser->shape->skips_locked |= is(&parser->before, "skip");
}

/* "count" of "SET count = count - 1". */
static void read_column(struct statement_shape *shape, struct level *level, const struct sql_word *word)
{
    level->wants_column = false;
    if (shape->set_count < SHAPE_COLUMNS)
        snprintf(shape->set[shape->set_count++], SQL_WORD, "%s", word->text);
    else
        shape->unknown = true;
}

static bool sets(const struct statement_shape *shape, const char *name)
{
    for (size_t i = 0; i < shape->set_count; i++)
        if (strcmp(shape->set[i], name) == 0)
            return true;
    return false;
}

/* The clause of an UPDATE that WORD belongs to, with the brackets around it. */
static enum clause update_clause(const struct parser *parser)
{
    for (size_t i = parser->depth + 1; i-- > 0;)
        if (parser->levels[i].updates)
            return parser->levels[i].clause;
    return CLAUSE_OTHER;
}

static void read_name(struct parser *parser, const struct sql_word *word)
{
    static const char *const NO_ALIAS[] = {"on",    "join",  "left",    "right", "inner",       "full",
                                           "cross", "using", "natural", "for",   "tablesample", NULL};
    struct statement_shape *shape = parser->shape;
    struct level *level = &parser->levels[parser->depth];
    enum clause clause = update_clause(parser);
    if (clause == CLAUSE_SET && shape->set_count > 0 && !level->wants_column &&
        strcmp(shape->set[shape->set_count - 1], word->text) == 0)
        shape->relative = true;
    if (clause == CLAUSE_WHERE && sets(shape, word->text))
        shape->conditional = true;
    if (level->wants_column)
        read_column(shape, level, word);
    level->wants_table |= is(word, "join");
    if (is(word, "join"))
        return;
    if (level->wants_table && !is(word, "only") && !is(word, "lateral")) {
        add_use(parser, level, word->text);
    } else if (level->last_use < shape->use_count && !is(word, "as")) {
        if (!is_one_of(word, NO_ALIAS))
            snprintf(shape->uses[level->last_use].alias, SQL_WORD, "%s", word->text);
        level->last_use = SHAPE_USES;
    }
}

/* INSERT, UPDATE, DELETE, MERGE and SELECT. False: WORD is none of these. */
static bool begins_query(struct parser *parser, struct level *level, const struct sql_word *word)
{
    static const char *const NO_UPDATE[] = {"for", "key", "do", "then", "on", NULL};
    if (is(word, "select")) {
        bool has_query = level->queries;
        level->queries = true;
        level->clause = CLAUSE_OTHER;
        level->access = ACCESS_READ;
        if (has_query) /* UNION */
            level->query = ++parser->queries;
        return true;
    }
    if (is(word, "update") && !is_one_of(&parser->before, NO_UPDATE)) {
        level->queries = level->updates = level->wants_table = true;
        level->access = ACCESS_UPDATE;
        return true;
    }
    if (is(word, "update") && (is(&parser->before, "do") || is(&parser->before, "then")))
        return level->updates = true;
    if (is(word, "into")) {
        level->access = is(&parser->before, "merge") ? ACCESS_UPDATE : ACCESS_INSERT;
        return level->wants_table = true;
    }
    return false;
}

/* The words that begin a clause. False: WORD is none of these. */
static bool begins_clause(struct parser *parser, struct level *level, const struct sql_word *word)
{
    static const char *const ENDS[] = {"group",     "order", "having", "limit",
                                       "returning", "union", "values", NULL};
    bool locks = (is(word, "update") || is(word, "share") || is(word, "no")) && is(&parser->before, "for");
    if (locks) {
        level->clause = CLAUSE_LOCK;
        lock_tables(parser, level, NULL);
        return true;
    }
    if (is(word, "from") && is(&parser->before, "delete")) {
        level->queries = level->wants_table = true;
        level->access = ACCESS_DELETE;
        level->clause = CLAUSE_FROM;
        return true;
    }
    if ((is(word, "from") && level->queries && !is(&parser->before, "distinct")) ||
        (is(word, "using") && level->clause == CLAUSE_FROM)) {
        level->access = ACCESS_READ;
        level->clause = CLAUSE_FROM;
        return level->wants_table = true;
    }
    if (is(word, "set") && level->updates) {
        level->clause = CLAUSE_SET;
        return level->wants_column = true;
    }
    if (is(word, "where") || is_one_of(word, ENDS)) {
        level->clause = is(word, "where") ? CLAUSE_WHERE : CLAUSE_OTHER;
        level->last_use = SHAPE_USES;
        return true;
    }
    return false;
}

static const char *const AGGREGATES[] = {"count", "sum", "min", "max", "avg", "bool_or", "bool_and", NULL};

/* A bracket of a SELECT in FROM belongs to the query around it, which FOR UPDATE locks as a whole; a subquery does not. */
static void open_bracket(struct parser *parser)
{
    struct level *level = &parser->levels[parser->depth];
    bool in_from = level->wants_table;
    parser->shape->aggregates |= is_one_of(&parser->before, AGGREGATES);
    if (level->last_use < parser->shape->use_count && level->access == ACCESS_READ)
        parser->shape->use_count--; /* FROM generate_series(…) */
    level->last_use = SHAPE_USES;
    level->wants_table = false;
    if (parser->depth + 1 == LEVELS) {
        parser->shape->unknown = true;
        return;
    }
    struct level *inner = &parser->levels[++parser->depth];
    *inner = (struct level){.last_use = SHAPE_USES, .query = level->query};
    if (!in_from)
        inner->query = ++parser->queries;
}

static void read_sign(struct parser *parser, const struct sql_word *word)
{
    struct level *level = &parser->levels[parser->depth];
    if (is(word, "(")) {
        open_bracket(parser);
    } else if (is(word, ")")) {
        parser->depth -= parser->depth > 0;
    } else if (is(word, ",")) {
        level->wants_table = level->clause == CLAUSE_FROM;
        level->wants_column = level->clause == CLAUSE_SET;
        level->last_use = SHAPE_USES;
    } else if (is(word, ";")) {
        parser->levels[0] = (struct level){.last_use = SHAPE_USES, .query = ++parser->queries};
        parser->depth = 0;
        parser->words = 0;
    }
}

/* COMMIT, END, ROLLBACK and ABORT are first words. */
static void read_end(struct parser *parser, const struct sql_word *word)
{
    enum shape_end *ends = &parser->shape->ends;
    if (parser->words == 1 && (is(word, "commit") || is(word, "end")))
        *ends = ENDS_COMMIT;
    else if (parser->words == 1 && (is(word, "rollback") || is(word, "abort")))
        *ends = ENDS_ROLLBACK;
    else if (parser->words > 1 && is(word, "to") && *ends == ENDS_ROLLBACK)
        *ends = ENDS_NOTHING;
}

static void read_word(struct parser *parser, const struct sql_word *word)
{
    struct level *level = &parser->levels[parser->depth];
    if (parser->words == 0 && parser->queries > 0)
        parser->shape->several = true;
    parser->words++;
    read_end(parser, word);
    if (word->kind == SQL_SIGN)
        read_sign(parser, word);
    else if (word->kind == SQL_NAME &&
             (begins_query(parser, level, word) || begins_clause(parser, level, word)))
        level->last_use = SHAPE_USES;
    else if (word->kind == SQL_NAME && level->clause == CLAUSE_LOCK)
        read_lock(parser, level, word);
    else if (word->kind == SQL_NAME)
        read_name(parser, word);
    parser->shape->unknown |= word->kind == SQL_UNKNOWN;
    parser->before = *word;
}

struct statement_shape statement_shape(const char *text, size_t size)
{
    struct statement_shape shape = {.unknown = strlen(text) > size || *text == '('};
    struct parser parser = {.shape = &shape};
    struct sql_word word;
    parser.levels[0].last_use = SHAPE_USES;
    while (sql_word_next(&text, &word))
        read_word(&parser, &word);
    return shape;
}

const struct table_use *shape_use(const struct statement_shape *shape, const char *table, enum access from,
                                  enum access to)
{
    for (size_t i = 0; i < shape->use_count; i++) {
        const struct table_use *use = &shape->uses[i];
        if (use->access >= from && use->access <= to && (!table || strcmp(use->table, table) == 0))
            return use;
    }
    return NULL;
}

bool shape_is_read_by(const struct statement_shape *shape, const char *text)
{
    struct statement_shape reader = statement_shape(text, strlen(text));
    static const char *const ALL[] = {"*", "exists", NULL};
    struct sql_word word;
    while (!reader.aggregates && sql_word_next(&text, &word))
        if (is_one_of(&word, ALL) || (word.kind == SQL_NAME && sets(shape, word.text)))
            return true;
    return reader.aggregates;
}
