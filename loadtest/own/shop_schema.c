/* Loads the file of "schema", which may be a dump of pg_dump, into the private PostgreSQL. */
#include "loadtest/own/shop_schema.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/sql/sql_script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WAIT_MS = 10000, SCHEMA_MAX_BYTES = 16 << 20 };

/* ---- the file -------------------------------------------------------------------------------------------- */

static char *read_schema(const struct shop_description *description)
{
    FILE *file = fopen(description->schema, "re");
    char *text = file ? malloc(SCHEMA_MAX_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, SCHEMA_MAX_BYTES + 1, file) : 0;
    bool ok = text && !ferror(file) && length <= SCHEMA_MAX_BYTES;
    if (ok)
        text[length] = 0;
    else
        shop_complain(description, "schema", "is %s, which cannot be read: %s", description->schema,
                      length > SCHEMA_MAX_BYTES ? "it has more than 16 MB" : strerror(errno));
    if (file)
        fclose(file);
    if (ok)
        return text;
    free(text);
    return NULL;
}

/* ---- its parts ------------------------------------------------------------------------------------------- */

static bool begins(const struct sql_part *part, const char *words)
{
    return part->length >= strlen(words) && strncasecmp(part->text, words, strlen(words)) == 0;
}

/* pg_dump begins and ends its output with \restrict and \unrestrict, which concern psql alone. */
static bool can_skip(const struct shop_description *description, const struct sql_part *part)
{
    bool connects = begins(part, "\\c ") || begins(part, "\\connect");
    if (begins(part, "\\restrict") || begins(part, "\\unrestrict"))
        return true;
    shop_complain(description, "schema", "has a command of psql at %s:%d: %.*s. %s", description->schema,
                  part->line, part->length < 60 ? (int)part->length : 60, part->text,
                  connects ? "Make the dump without --create (-C)" : "Remove it, or write it in SQL");
    return false;
}

static void say_error(const struct shop_description *description, const struct sql_part *part,
                      const struct db *db)
{
    const char *error = db_error(db), *text = strncmp(error, "ERROR:  ", 8) == 0 ? error + 8 : error;
    bool is_role = strncmp(text, "role \"", 6) == 0;
    int line = db_error_line(db);
    shop_complain(
        description, "schema", "fails at %s:%d: %s. %s", description->schema,
        part->line + (line > 0 ? line - 1 : 0), text,
        is_role ? "Make the dump with --no-owner and --no-privileges (-O -x), or create the role in the file"
                : "Correct the SQL");
}

/* pg_dump sets parameters that only its own version of PostgreSQL knows. psql continues after the error, and so does this. */
static bool is_harmless(const struct sql_part *part, const char *error)
{
    return begins(part, "SET ") && strstr(error, "unrecognized configuration parameter");
}

static bool run_part(struct db *db, const struct shop_description *description, const struct sql_part *part)
{
    char *sql = strndup(part->text, part->length);
    int64_t until_us = monotonic_us() + (int64_t)WAIT_MS * 1000;
    db_set_deadline(db, until_us, until_us);
    bool ok = sql && db_run_copy(db, sql, part->data, part->data_length) == DB_OK;
    if (!sql)
        complain("out of memory");
    else if (!ok && is_harmless(part, db_error(db)))
        ok = true;
    else if (!ok)
        say_error(description, part, db);
    free(sql);
    return ok;
}

bool shop_schema_load(struct db *db, const struct shop_description *description)
{
    char *text = read_schema(description);
    struct sql_script script = {.at = text, .line = 1};
    struct sql_part part;
    bool ok = text != NULL;
    while (ok && !interrupted() && sql_script_next(&script, &part))
        ok = part.is_command ? can_skip(description, &part) : run_part(db, description, &part);
    free(text);
    return ok && !interrupted();
}
