/* Tells what a statement has done, by the words of its text and by its answer. */
#include "loadtest/own/polls/statement_effect.h"

#include "loadtest/own/gate/wire_protocol.h"

#include <string.h>
#include <strings.h>

enum { CUT_OFF = MESSAGE_TEXT - 4 }; /* a text of this length may lack its end */

static bool begins_with(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncasecmp(text, word, length) == 0 && (text[length] == '\0' || strchr(" ;(", text[length]));
}

static bool has_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasestr(text, *words))
            return true;
    return false;
}

/* The answer says that no row was concerned, as in "UPDATE 0" and "INSERT 0 0". */
static bool is_about_no_row(const char *answer, const char *word)
{
    size_t length = strlen(word);
    const char *count = strrchr(answer, ' ');
    return strncasecmp(answer, word, length) == 0 && answer[length] == ' ' && strcmp(count, " 0") == 0;
}

/* Only a lock of another one explains these errors, or rows of another one. A serialization failure is not among them: the next try can
 * succeed although the others have done nothing. */
static enum statement_effect effect_of_error(const char *sqlstate)
{
    if (strcmp(sqlstate, "55P03") == 0)
        return EFFECT_REFUSED;
    return strcmp(sqlstate, "23505") == 0 || strcmp(sqlstate, "23P01") == 0 ? EFFECT_VAIN : EFFECT_CHANGES;
}

static enum statement_effect effect_of_select(const char *text, const char *answer)
{
    static const char *const ACTS[] = {"advisory", "nextval", "setval",  "notify",  " into ", "lo_",
                                       "dblink",   "insert ", "update ", "delete ", "merge ", NULL};
    static const char *const LOCKS[] = {" for update", " for no key update", " for share", " for key share",
                                        NULL};
    const bool locks = has_one_of(text, LOCKS);
    if (strcasestr(text, "pg_try_advisory") && !strchr(answer, ','))
        return strcmp(answer, "f") == 0 || strcmp(answer, "0") == 0 ? EFFECT_REFUSED : EFFECT_CHANGES;
    if (locks && begins_with(text, "SELECT") && !strcasestr(text, "advisory") && !strcasestr(text, "nextval"))
        return strcmp(answer, "SELECT 0") != 0   ? EFFECT_LOCKS
               : strcasestr(text, "skip locked") ? EFFECT_REFUSED
                                                 : EFFECT_VAIN;
    return locks || has_one_of(text, ACTS) ? EFFECT_CHANGES : EFFECT_NONE;
}

/* It may run more than its text shows. */
static bool runs_more(const struct routines *routines, const char *text)
{
    const char *semicolon = strchr(text, ';');
    return strlen(text) >= CUT_OFF || (semicolon && semicolon[strspn(semicolon, "; ")] != '\0') ||
           (routines && statement_runs_routine(routines, text));
}

bool statement_writes_one_table(const struct routines *routines, const char *text)
{
    static const char *const ACTS[] = {"advisory", "nextval", "setval", "notify", "lo_", "dblink", NULL};
    return (begins_with(text, "INSERT") || begins_with(text, "UPDATE") || begins_with(text, "DELETE")) &&
           !has_one_of(text, ACTS) && !runs_more(routines, text);
}

enum statement_effect statement_effect(const struct routines *routines, const char *text, const char *answer,
                                       const char *sqlstate)
{
    static const char *const WRITES[] = {"INSERT", "UPDATE", "DELETE"};
    if (begins_with(text, "ROLLBACK TO") || begins_with(text, "SAVEPOINT") || begins_with(text, "RELEASE"))
        return *sqlstate ? EFFECT_CHANGES : EFFECT_NONE;
    if (begins_with(text, "COMMIT") || begins_with(text, "END") || begins_with(text, "ROLLBACK"))
        return *sqlstate ? EFFECT_CHANGES : EFFECT_ENDS;
    if (runs_more(routines, text))
        return EFFECT_CHANGES;
    if (*sqlstate)
        return effect_of_error(sqlstate);
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++)
        if (begins_with(text, WRITES[i]))
            return is_about_no_row(answer, WRITES[i]) && !strcasestr(text, "nextval") &&
                           !strcasestr(text, "advisory")
                       ? EFFECT_VAIN
                       : EFFECT_CHANGES;
    return begins_with(text, "SELECT") || begins_with(text, "WITH") ? effect_of_select(text, answer)
                                                                    : EFFECT_CHANGES;
}
