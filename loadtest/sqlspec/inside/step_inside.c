/* A step outside a transaction is a separate transaction. If functions, triggers or several statements run in it, or if it reads and writes, then
 * another session can act between its reads and its end. Deferred triggers run inside a COMMIT, so this holds for that, too. */
#include "loadtest/sqlspec/inside/step_inside.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/sql/sql_signs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LIST_US = 10000000, PREPARED_SIZE = 4000, NAME_SIZE = 100 };

/* A trigger has two rows, so that its text counts like that of a function. */
static const char MARIADB_ROUTINES_SQL[] =
    "SELECT ROUTINE_NAME, IFNULL(ROUTINE_DEFINITION, 'SELECT 1; SELECT 1'), 'function' FROM information_schema.ROUTINES"
    " WHERE ROUTINE_SCHEMA NOT IN ('mysql', 'sys')"
    " UNION ALL SELECT EVENT_OBJECT_TABLE, CONCAT('\"trigger ', TRIGGER_NAME, '\"'), 'trigger' FROM information_schema.TRIGGERS"
    " WHERE TRIGGER_SCHEMA NOT IN ('mysql', 'sys')"
    " UNION ALL SELECT CONCAT('trigger ', TRIGGER_NAME), ACTION_STATEMENT, 'function' FROM information_schema.TRIGGERS"
    " WHERE TRIGGER_SCHEMA NOT IN ('mysql', 'sys')"
    " UNION ALL SELECT TABLE_NAME, VIEW_DEFINITION, 'read' FROM information_schema.VIEWS"
    " WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys')";

/* What the functions below look at. */
struct looks {
    const struct step_inside *inside;
    const struct spec *spec;
    bool is_mariadb;
};

static bool know_routines(struct step_inside *inside, struct session *control)
{
    size_t i;
    json_t *row;
    if (inside->routines_known)
        return true;
    if (!session_run(control, control->driver->ends_silently ? MARIADB_ROUTINES_SQL : ROUTINES_SQL,
                     monotonic_us() + LIST_US)) {
        complain("cannot list the functions and triggers: %s", control->error);
        return false;
    }
    json_array_foreach(json_object_get(json_array_get(control->results, 0), "rows"), i, row) {
        if (!routines_add(&inside->routines, json_string_value(json_array_get(row, 0)),
                          json_string_value(json_array_get(row, 1)),
                          json_string_value(json_array_get(row, 2)))) {
            complain("out of memory");
            return false;
        }
    }
    inside->routines_known = true;
    return true;
}

void step_inside_free(struct step_inside *inside)
{
    routines_free(&inside->routines);
}

/* The texts of a session, one for each I; NULL: there are no more. */
static const char *text_of(const struct spec *spec, size_t session, size_t i)
{
    const struct spec_session *of = &spec->sessions[session];
    if (i == 0)
        return of->setup.sql ? of->setup.sql : "";
    return i <= of->step_count ? spec->steps[of->steps[i - 1]].block.sql : NULL;
}

/* Where WORD stands in TEXT, as a whole word; NULL. */
static const char *find_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    const char *at = text;
    while ((at = strcasestr(at, word)) && ((at > text && sql_is_name(at[-1])) || sql_is_name(at[length])))
        at++;
    return at;
}

/* SQL is EXECUTE, or EXECUTE IMMEDIATE: copies what that runs. False: it is not in the specification. */
static bool find_prepared(const struct spec *spec, size_t session, const char *sql,
                          char ret_text[static PREPARED_SIZE])
{
    char name[NAME_SIZE] = "", found[NAME_SIZE];
    const char *text, *begins = NULL, *at;
    (void)sscanf(sql_skip_blank(sql), "%*s %99[^ \t\r\n(;]", name);
    if (strcasecmp(name, "IMMEDIATE") == 0)
        begins = find_word(sql, name) + strlen(name);
    for (size_t i = 0; !begins && (text = text_of(spec, session, i)); i++)
        for (at = text; !begins && (at = find_word(at, "PREPARE")); at++)
            if (sscanf(at, "%*s %99[^ \t\r\n(;]", found) == 1 && strcasecmp(found, name) == 0) {
                const char *as = find_word(at, "AS"), *from = find_word(at, "FROM");
                begins = as && (!from || as < from) ? as + 2 : from ? from + 4 : NULL;
            }
    if (!begins)
        return false;
    begins += strspn(begins, " \t\r\n'\"");
    (void)snprintf(ret_text, PREPARED_SIZE, "%.*s", (int)strcspn(begins, ";"), begins);
    return *ret_text != '\0' && *ret_text != '@'; /* MariaDB: the text may be in a variable */
}

/* MariaDB at REPEATABLE READ, its default: what a statement that writes reads, it locks. */
static bool locks_what_it_reads(const struct spec *spec)
{
    bool is_named = false;
    const char *text;
    for (size_t i = 0; i < spec->session_count; i++)
        for (size_t k = 0; (text = text_of(spec, i, k)); k++)
            is_named |= strcasestr(text, "COMMITTED") != NULL;
    for (size_t i = 0; i < spec->setup_count; i++)
        is_named |= strcasestr(spec->setups[i].sql, "COMMITTED") != NULL;
    return !is_named;
}

static bool begins_with_one_of(const char *sql, const char *const *words)
{
    sql = sql_skip_blank(sql);
    while (*words && (strncasecmp(sql, *words, strlen(*words)) != 0 || sql_is_name(sql[strlen(*words)])))
        words++;
    return *words != NULL;
}

static const char *const WRITES[] = {"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", NULL};

/* The transactions of SESSION keep the snapshot, or the read locks, of their first statement, as far as the texts say so. */
static bool keeps_what_it_reads(const struct looks *looks, size_t session)
{
    const char *text;
    for (size_t k = 0; (text = text_of(looks->spec, session, k)); k++)
        if (strcasestr(text, "SERIALIZABLE") || (!looks->is_mariadb && strcasestr(text, "REPEATABLE READ")))
            return true;
    return false;
}

/* Can another session act inside SQL, which runs outside a transaction? */
static bool is_not_atomic(const struct looks *looks, size_t session, const char *sql)
{
    static const char *const EXECUTE[] = {"EXECUTE", NULL}, *const BLOCKS[] = {"BEGIN NOT", "IF",   "CASE",
                                                                               "FOR",       "LOOP", "WHILE",
                                                                               "REPEAT",    NULL},
                             *const BEGINS[] = {"BEGIN", "START", NULL}, *const REPLACE[] = {"REPLACE", NULL};
    char prepared[PREPARED_SIZE];
    if (begins_with_one_of(sql, EXECUTE)) {
        if (!find_prepared(looks->spec, session, sql, prepared))
            return true;
        sql = prepared;
    }
    if (looks->is_mariadb && begins_with_one_of(sql, BLOCKS))
        return true;
    if (begins_with_one_of(sql, BEGINS) && !strcasestr(sql, "COMMIT"))
        return false;
    const struct statement_inside inside = statement_inside(&looks->inside->routines, sql);
    if (!looks->is_mariadb)
        return inside.calls;
    if (inside.many && !begins_with_one_of(sql, BEGINS)) /* each is a separate transaction there */
        return true;
    if (begins_with_one_of(sql, WRITES) && locks_what_it_reads(looks->spec))
        return false;
    return inside.runs || inside.reads_and_writes ||
           (begins_with_one_of(sql, REPLACE) && find_word(sql, "SELECT"));
}

/* MariaDB at READ COMMITTED: in a statement that writes, triggers and functions read with locks, so it waits for what others have written before
 * it began, but what two such statements at the same time read and do not find, nothing locks. */
static bool reads_in_triggers(const struct looks *looks, const char *sql)
{
    return looks->is_mariadb && begins_with_one_of(sql, WRITES) && !locks_what_it_reads(looks->spec) &&
           statement_inside(&looks->inside->routines, sql).runs;
}

/* A deferred trigger runs in the COMMIT of SESSION, and reads. */
static bool has_deferred(const struct looks *looks, size_t session, const size_t *started, size_t count)
{
    bool defers = false;
    for (size_t i = 0; i < count && !defers; i++) {
        const struct spec_step *step = &looks->spec->steps[started[i]];
        defers = step->session == session && statement_defers(&looks->inside->routines, step->block.sql);
    }
    return defers;
}

bool step_inside_note(struct step_inside *inside, const struct spec *spec, struct session *control,
                      size_t step, bool in_transaction, const size_t *started, size_t count)
{
    static const char *const ENDS[] = {"COMMIT", "END", NULL};
    const struct looks looks = {inside, spec, control->driver->ends_silently};
    const struct spec_step *is = &spec->steps[step];
    bool ends = in_transaction && begins_with_one_of(is->block.sql, ENDS);
    if (!know_routines(inside, control))
        return false;
    if (in_transaction && !inside->is_open && !keeps_what_it_reads(&looks, is->session) &&
        statement_inside(&inside->routines, is->block.sql).several) {
        inside->is_open = true;
        inside->open_step = step;
    }
    if (inside->found)
        return true;
    inside->found = ends             ? has_deferred(&looks, is->session, started, count)
                    : in_transaction ? reads_in_triggers(&looks, is->block.sql)
                                     : is_not_atomic(&looks, is->session, is->block.sql);
    inside->step = step;
    inside->why = ends ? INSIDE_COMMIT : in_transaction ? INSIDE_TRIGGER : INSIDE_ALONE;
    return true;
}
