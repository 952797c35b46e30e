/* The SQL of a description: it resets the stock, and tells how much is left and how much was sold. */
#include "loadtest/own/shop_database.h"

#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"

#include <errno.h>
#include <string.h>

enum { WAIT_MS = 10000, SCHEMA_MAX_BYTES = 16 << 20 };

static void wait_from_now(struct db *db)
{
    int64_t until_us = monotonic_us() + (int64_t)WAIT_MS * 1000;
    db_set_deadline(db, until_us, until_us);
}

/* NULL, having said why. */
static struct db *connect_to(const char *address, const struct shop_description *description)
{
    struct db *db = db_new(address, "loadtest");
    if (!db) {
        complain("out of memory");
        return NULL;
    }
    wait_from_now(db);
    if (db_ready(db) == DB_OK)
        return db;
    if (description->database)
        shop_complain(description, "database", "cannot be used: %s. Start PostgreSQL, or correct the address",
                      db_error(db));
    else
        complain("the private PostgreSQL does not answer: %s", db_error(db));
    db_free(db);
    return NULL;
}

/* ---- scripts ------------------------------------------------------------------------------------------- */

static char *read_schema(const struct shop_description *description)
{
    FILE *file = fopen(description->schema, "re");
    char *text = file ? malloc(SCHEMA_MAX_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, SCHEMA_MAX_BYTES + 1, file) : 0;
    bool well = text && !ferror(file) && length <= SCHEMA_MAX_BYTES;
    if (well)
        text[length] = 0;
    else
        shop_complain(description, "schema", "is %s, which cannot be read: %s", description->schema,
                      length > SCHEMA_MAX_BYTES ? "it has more than 16 MB" : strerror(errno));
    if (file)
        fclose(file);
    if (well)
        return text;
    free(text);
    return NULL;
}

bool shop_database_load(const char *address, const struct shop_description *description)
{
    char *script = read_schema(description);
    struct db *db = script ? connect_to(address, description) : NULL;
    bool well = false;
    if (db) {
        wait_from_now(db);
        well = db_run_script(db, script) == DB_OK;
        if (!well)
            shop_complain(description, "schema",
                          "fails: %s. Correct %s; it must be plain SQL, without commands of psql",
                          db_error(db), description->schema);
    }
    db_free(db);
    free(script);
    return well;
}

bool shop_database_reset(const char *address, const struct shop_description *description, int64_t stock)
{
    struct db *db = connect_to(address, description);
    struct shop_values values = SHOP_NO_VALUES;
    values.stock = stock;
    bool well = db != NULL;
    for (size_t i = 0; well && i < description->reset_count; i++) {
        char *sql = shop_expand(description->reset[i], &values), member[32];
        snprintf(member, sizeof member, "reset[%zu]", i);
        wait_from_now(db);
        well = sql && db_run_script(db, sql) == DB_OK;
        if (!sql)
            complain("out of memory");
        else if (!well)
            shop_complain(description, member, "fails: %s. Correct the SQL", db_error(db));
        free(sql);
    }
    db_free(db);
    return well;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

/* SQL that a file has, as what the connection takes: it recognizes a statement by its address. */
struct question {
    struct statement statement;
    char name[32], *sql, member[32];
};

/* "12", "-3" or "12.00", which is what a sum of numeric may give. */
static bool read_count(const char *text, int64_t *ret_count)
{
    char *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    if (errno || end == text || end[*end == '.' ? 1 + strspn(end + 1, "0") : 0])
        return false;
    *ret_count = count;
    return true;
}

/* Asks, and returns the only value; NULL, having said why. */
static const char *ask(struct db *db, const struct shop_description *description,
                       const struct question *question, PGresult **ret_rows)
{
    wait_from_now(db);
    if (db_run(db, &question->statement, NULL, ret_rows) != DB_OK) {
        shop_complain(description, question->member, "fails: %s. Correct the SQL", db_error(db));
        return NULL;
    }
    int rows = PQntuples(*ret_rows), columns = PQnfields(*ret_rows);
    if (rows == 1 && columns == 1 && !PQgetisnull(*ret_rows, 0, 0))
        return PQgetvalue(*ret_rows, 0, 0);
    if (rows == 1 && columns == 1)
        shop_complain(description, question->member,
                      "gives NULL. Write coalesce(…, 0), or correct the condition");
    else
        shop_complain(description, question->member,
                      "gives %d rows of %d columns. Write SQL that gives one value", rows, columns);
    return NULL;
}

static bool ask_count(struct db *db, const struct shop_description *description,
                      const struct question *question, int64_t *ret_count)
{
    AUTO_RESULT rows = NULL;
    const char *value = ask(db, description, question, &rows);
    if (value && !read_count(value, ret_count)) {
        shop_complain(description, question->member,
                      "gives '%.60s', which is no whole number. Correct the SQL", value);
        return false;
    }
    return value != NULL;
}

static bool ask_truth(struct db *db, const struct shop_description *description,
                      const struct question *question, bool *ret_truth)
{
    AUTO_RESULT rows = NULL;
    const char *value = ask(db, description, question, &rows);
    if (value && strcmp(value, "t") != 0 && strcmp(value, "f") != 0) {
        shop_complain(description, question->member,
                      "gives '%.60s', which is neither true nor false. Correct the SQL", value);
        return false;
    }
    *ret_truth = value && *value == 't';
    return value != NULL;
}

/* Asks QUESTIONS: the stock, what was sold, and the invariants. */
static bool ask_all(struct db *db, const struct shop_description *description,
                    const struct question *questions, struct shop_stock *ret_stock)
{
    db_begin(db, DB_REPEATABLE_READ);
    bool well = ask_count(db, description, &questions[0], &ret_stock->left) &&
                ask_count(db, description, &questions[1], &ret_stock->sold);
    for (size_t i = 0; well && i < description->invariant_count; i++) {
        bool is_true;
        well = ask_truth(db, description, &questions[2 + i], &is_true);
        if (well && !is_true && ret_stock->broken < 0)
            ret_stock->broken = (int)i;
    }
    db_rollback(db);
    return well;
}

static bool make_question(struct question *question, size_t i, const char *sql,
                          const struct shop_values *values)
{
    snprintf(question->name, sizeof question->name, "own_%zu", i);
    if (i < 2)
        snprintf(question->member, sizeof question->member, "%s", i == 0 ? "stock" : "sold");
    else
        snprintf(question->member, sizeof question->member, "invariant[%zu]", i - 2);
    question->sql = shop_expand(sql, values);
    question->statement = (struct statement){.name = question->name, .sql = question->sql};
    return question->sql != NULL;
}

bool shop_database_read(const char *address, const struct shop_description *description, int64_t stock,
                        struct shop_stock *ret_stock)
{
    struct question *questions = calloc(2 + SHOP_SQL_MAX, sizeof *questions);
    struct shop_values values = SHOP_NO_VALUES;
    size_t count = 2 + description->invariant_count;
    values.stock = stock;
    *ret_stock = (struct shop_stock){.broken = -1};
    bool well = questions != NULL;
    for (size_t i = 0; well && i < count; i++)
        well = make_question(&questions[i], i,
                             i == 0   ? description->stock
                             : i == 1 ? description->sold
                                      : description->invariants[i - 2],
                             &values);
    if (!well)
        complain("out of memory");
    struct db *db = well ? connect_to(address, description) : NULL;
    well = db && ask_all(db, description, questions, ret_stock);
    db_free(db);
    for (size_t i = 0; questions && i < count; i++)
        free(questions[i].sql);
    free(questions);
    return well;
}
