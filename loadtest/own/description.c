/* Reads the description of a user's service, and reports the line and the member of each mistake. */
#include "loadtest/own/description_reader.h"

#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/own/json_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    FILE_MAX_BYTES = 1 << 20,
    TIMEOUT_MS = 10000,
    START_TIMEOUT_MS = 60000,
    SETTLE_TIMEOUT_MS = 10000,
    TIMEOUT_MAX_MS = 3600000
};

/* ---- placeholders -------------------------------------------------------------------------------------- */

enum {
    IN_START = PLACE_PORT | PLACE_POSTGRES | PLACE_REDIS | PLACE_INSTANCE,
    IN_READY = PLACE_PORT | PLACE_INSTANCE,
    IN_SQL = PLACE_STOCK,
    IN_RESET = PLACE_PORT | PLACE_STOCK | PLACE_INSTANCE,
    IN_REQUEST = IN_RESET | PLACE_REQUEST
};

/* Refuses a placeholder that has no value in MEMBER, and, if STRICT, other words in braces: a URL has none. */
static bool check_placeholders(const struct reader *reader, const char *member, const char *text,
                               unsigned allowed, bool strict)
{
    char list[200];
    size_t length;
    const char *found = placeholder_without_value(text, allowed, strict, &length);
    if (!found)
        return true;
    placeholders_list(allowed, list, sizeof list);
    return wrong(reader, member, "has %.*s, which has no value there (valid:%s)", (int)length, found, list);
}

/* ---- values of any kind -------------------------------------------------------------------------------- */

/* A member that is a text; absent: *ret_text stays. */
static bool read_text(const struct reader *reader, const char *parent, const json_t *object, const char *name,
                      unsigned allowed, const char **ret_text)
{
    const json_t *value = json_object_get(object, name);
    char member[MEMBER_MAX];
    if (!value)
        return true;
    path_of_member(parent, name, member);
    if (!json_is_string(value))
        return wrong(reader, member, "is %s. Write a string", kind_of(value));
    if (!*json_string_value(value))
        return wrong(reader, member, "is empty. Write a value, or remove the member");
    *ret_text = json_string_value(value);
    return check_placeholders(reader, member, *ret_text, allowed, false);
}

static bool read_number(const struct reader *reader, const char *parent, const json_t *object,
                        const char *name, int64_t max, int64_t *ret_number)
{
    const json_t *value = json_object_get(object, name);
    char member[MEMBER_MAX];
    if (!value)
        return true;
    path_of_member(parent, name, member);
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > max)
        return wrong(reader, member, "is not a whole number from 1 to %" PRId64, max);
    *ret_number = json_integer_value(value);
    return true;
}

/* A text, or an array of 1 to MOST texts. */
static bool read_texts(const struct reader *reader, const char *member, const json_t *value, unsigned allowed,
                       size_t most, const char **ret_texts, size_t *ret_count)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    if (!json_is_array(value) && !json_is_string(value))
        return wrong(reader, member, "is %s. Write an array of strings", kind_of(value));
    if (count == 0 || count > most)
        return wrong(reader, member, "has %zu items (valid: 1 to %zu)", count, most);
    for (size_t i = 0; i < count; i++) {
        char path[MEMBER_MAX];
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        path_of_item(member, i, path);
        const char *at = json_is_array(value) ? path : member;
        if (!json_is_string(item))
            return wrong(reader, at, "is %s. Write a string", kind_of(item));
        if (!*json_string_value(item))
            return wrong(reader, at, "is empty. Write a value, or remove the member");
        if (!check_placeholders(reader, at, json_string_value(item), allowed, false))
            return false;
        ret_texts[i] = json_string_value(item);
    }
    *ret_count = count;
    return true;
}

static bool read_pairs(const struct reader *reader, const char *parent, const json_t *object,
                       const char *name, unsigned allowed, struct shop_pairs *ret_pairs)
{
    const json_t *pairs = json_object_get(object, name);
    char member[MEMBER_MAX], path[MEMBER_MAX];
    const char *key;
    json_t *value;
    if (!pairs)
        return true;
    path_of_member(parent, name, member);
    if (!json_is_object(pairs))
        return wrong(reader, member, "is %s. Write an object of names and strings", kind_of(pairs));
    json_object_foreach((json_t *)pairs, key, value) {
        if (member_is_comment(key))
            continue;
        path_of_member(member, key, path);
        if (!*key || strpbrk(key, "=: \r\n"))
            return wrong(reader, path, "is not a valid name. Write a name without '=', ':' and blanks");
        if (!json_is_string(value))
            return wrong(reader, path, "is %s. Write a string", kind_of(value));
        if (strpbrk(json_string_value(value), "\r\n") && allowed != IN_START)
            return wrong(reader, path, "contains a line end, which a header cannot have. Remove it");
        if (ret_pairs->count == SHOP_PAIRS_MAX)
            return wrong(reader, member, "has more than %d members. Remove some", SHOP_PAIRS_MAX);
        if (!check_placeholders(reader, path, json_string_value(value), allowed, false))
            return false;
        ret_pairs->name[ret_pairs->count] = key;
        ret_pairs->value[ret_pairs->count++] = json_string_value(value);
    }
    return true;
}

/* ---- members that have a meaning ----------------------------------------------------------------------- */

static bool read_url(const struct reader *reader, const char *parent, const json_t *object, const char *name,
                     unsigned allowed, const char **ret_url)
{
    char member[MEMBER_MAX];
    path_of_member(parent, name, member);
    if (!read_text(reader, parent, object, name, allowed, ret_url) || !*ret_url)
        return !json_object_get(object, name);
    bool is_http = strncmp(*ret_url, "http://", 7) == 0 || strncmp(*ret_url, "https://", 8) == 0;
    if (!is_http || strpbrk(*ret_url, " \t\r\n"))
        return wrong(reader, member, "is '%.100s', which is not an address. Write http://HOST:PORT/PATH",
                     *ret_url);
    return check_placeholders(reader, member, *ret_url, allowed, true);
}

static bool read_method(const struct reader *reader, const char *parent, const json_t *object,
                        const char **ret_method)
{
    char member[MEMBER_MAX];
    *ret_method = "POST";
    if (!read_text(reader, parent, object, "method", 0, ret_method))
        return false;
    size_t letters = strspn(*ret_method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    path_of_member(parent, "method", member);
    return (!(*ret_method)[letters] && letters <= 16) ||
           wrong(reader, member, "is '%.40s'. Write a method in capital letters, such as POST", *ret_method);
}

/* A body that is no text is sent as JSON. *ret_made is the caller's to free. */
static bool read_body(const struct reader *reader, const char *parent, const json_t *object, unsigned allowed,
                      const char **ret_body, char **ret_made)
{
    const json_t *body = json_object_get(object, "body");
    char member[MEMBER_MAX];
    if (!body || json_is_null(body))
        return true;
    *ret_body = json_string_value(body);
    if (!*ret_body) {
        *ret_body = *ret_made = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!*ret_body) {
            complain("out of memory");
            return false;
        }
    }
    path_of_member(parent, "body", member);
    return check_placeholders(reader, member, *ret_body, allowed, false);
}

static bool read_request(const struct reader *reader, const char *name, const json_t *value, unsigned allowed,
                         struct shop_request *ret_request, char **ret_body_text)
{
    static const char *const NAMES[] = {"method", "url", "headers", "body", NULL};
    if (!json_is_object(value))
        return wrong(reader, name, "is %s. Write an object with \"url\"", kind_of(value));
    if (!json_object_get(value, "url"))
        return wrong(reader, name, "has no \"url\". Add the address of the request");
    return only_members(reader, name, value, NAMES) &&
           read_method(reader, name, value, &ret_request->method) &&
           read_url(reader, name, value, "url", allowed, &ret_request->url) &&
           read_pairs(reader, name, value, "headers", allowed, &ret_request->headers) &&
           read_body(reader, name, value, allowed, &ret_request->body, ret_body_text);
}

static bool read_reset(const struct reader *reader, const json_t *root, struct shop_description *description)
{
    const json_t *value = json_object_get(root, "reset");
    if (json_is_object(value))
        return read_request(reader, "reset", value, IN_RESET, &description->reset_request,
                            &description->reset_body_text);
    return read_texts(reader, "reset", value, IN_SQL, SHOP_SQL_MAX, description->reset,
                      &description->reset_count);
}

static bool read_address(const struct reader *reader, const json_t *root, const char *name, const char *valid,
                         bool (*is_valid)(const char *), const char **ret_address)
{
    if (!read_text(reader, "", root, name, 0, ret_address))
        return false;
    return !*ret_address || is_valid(*ret_address) ||
           wrong(
               reader, name,
               "is not an address. Write %s, or remove the member: then the command starts a private server",
               valid);
}

static bool is_redis_address(const char *address)
{
    return strncmp(address, "redis://", 8) == 0 && address[8];
}

static bool read_redis(const struct reader *reader, const json_t *root, const char **ret_address)
{
    const char *address = json_string_value(json_object_get(root, "redis"));
    if (address && strncmp(address, "rediss://", 9) == 0)
        return wrong(
            reader, "redis",
            "is an address with TLS, which explore does not support. Write the address of a port without TLS, such "
            "as redis://HOST:PORT");
    return read_address(reader, root, "redis", "redis://HOST:PORT", is_redis_address, ret_address);
}

static bool read_schema(const struct reader *reader, const json_t *root, struct shop_description *description)
{
    const char *name = NULL;
    if (!read_text(reader, "", root, "schema", 0, &name) || !name)
        return !json_object_get(root, "schema");
    if (description->database)
        return wrong(reader, "schema",
                     "is for a private database, but \"database\" names a real one. Remove one of them");
    int made = name[0] == '/' ? asprintf(&description->schema, "%s", name)
                              : asprintf(&description->schema, "%s/%s", description->folder, name);
    if (made < 0) {
        description->schema = NULL;
        complain("out of memory");
        return false;
    }
    return access(description->schema, R_OK) == 0 ||
           wrong(reader, "schema", "is %s, which cannot be read: %s", description->schema, strerror(errno));
}

/* The rows that it changes are counted, so it is one statement that can be a part of another one. */
static bool read_expires(const struct reader *reader, const json_t *root, const char **ret_sql)
{
    if (!read_text(reader, "", root, "expires", IN_SQL, ret_sql) || !*ret_sql)
        return !json_object_get(root, "expires");
    return ((strncasecmp(*ret_sql, "UPDATE ", 7) == 0 || strncasecmp(*ret_sql, "DELETE ", 7) == 0) &&
            !strchr(*ret_sql, ';') && !strcasestr(*ret_sql, "returning")) ||
           wrong(
               reader, "expires",
               "is not one UPDATE or DELETE without RETURNING and without a semicolon. Write the statement that makes the "
               "rows of the locks old, such as UPDATE lock SET until = now() - interval '1 s'");
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* The first of the texts that a started service alone gives a value. */
static bool check_start(const struct reader *reader, const struct shop_description *description)
{
    bool starts = description->start[0] != NULL;
    if (starts)
        return true;
    if (description->env.count > 0)
        return wrong(reader, "env",
                     "is for a service that the command starts. Add \"start\", or remove \"env\"");
    if (!description->database)
        return wrong(
            reader, "",
            "has neither \"start\" nor \"database\". Add \"start\", so that the command can start the service, or "
            "the address of the database that the running service uses");
    if (shop_mentions(description->request.url, "port"))
        return wrong(
            reader, "request.url",
            "has {port}, but the command does not start the service. Add \"start\", or write the port");
    return true;
}

static bool uses_redis(const struct shop_description *description)
{
    bool uses = description->redis != NULL;
    for (size_t i = 0; description->start[i]; i++)
        uses = uses || shop_mentions(description->start[i], "redis");
    for (size_t i = 0; i < description->env.count; i++)
        uses = uses || shop_mentions(description->env.value[i], "redis");
    return uses;
}

static bool read_members(const struct reader *reader, const json_t *root,
                         struct shop_description *description)
{
    static const char *const NAMES[] = {"$schema",
                                        "start",
                                        "env",
                                        "ready",
                                        "database",
                                        "schema",
                                        "redis",
                                        "reset",
                                        "request",
                                        "units",
                                        "sold_out",
                                        "answers",
                                        "settled",
                                        "stock",
                                        "sold",
                                        "expires",
                                        "invariant",
                                        "timeout_ms",
                                        "start_timeout_ms",
                                        "settle_timeout_ms",
                                        NULL};
    static const char *const NEEDED[] = {"reset", "request", "stock", "sold"};
    const json_t *start = json_object_get(root, "start"), *invariant = json_object_get(root, "invariant");
    size_t words;
    if (!only_members(reader, "", root, NAMES))
        return false;
    for (size_t i = 0; i < sizeof NEEDED / sizeof NEEDED[0]; i++)
        if (!json_object_get(root, NEEDED[i])) {
            complain("%s:%d: the member \"%s\" is missing. `loadtest init` writes a file that explains it",
                     reader->path, json_line_of(reader->text, ""), NEEDED[i]);
            return false;
        }
    if (start && !json_is_array(start))
        return wrong(reader, "start",
                     "is %s. Write the command as an array of words, such as [\"node\", \"server.js\"]",
                     kind_of(start));
    if ((start &&
         !read_texts(reader, "start", start, IN_START, SHOP_WORDS_MAX, description->start, &words)) ||
        !read_pairs(reader, "", root, "env", IN_START, &description->env) ||
        !read_url(reader, "", root, "ready", IN_READY, &description->ready) ||
        !read_address(reader, root, "database", "postgresql://USER:PASSWORD@HOST:PORT/NAME", db_url_is_valid,
                      &description->database) ||
        !read_schema(reader, root, description) || !read_redis(reader, root, &description->redis) ||
        !read_reset(reader, root, description) ||
        !read_request(reader, "request", json_object_get(root, "request"), IN_REQUEST, &description->request,
                      &description->body_text) ||
        !read_number(reader, "", root, "units", 1000000, &description->units) ||
        !read_answers(reader, root, description) ||
        !read_text(reader, "", root, "settled", IN_SQL, &description->settled) ||
        !read_text(reader, "", root, "stock", IN_SQL, &description->stock) ||
        !read_text(reader, "", root, "sold", IN_SQL, &description->sold) ||
        !read_expires(reader, root, &description->expires) ||
        (invariant && !read_texts(reader, "invariant", invariant, IN_SQL, SHOP_SQL_MAX,
                                  description->invariants, &description->invariant_count)) ||
        !read_number(reader, "", root, "timeout_ms", TIMEOUT_MAX_MS, &description->timeout_ms) ||
        !read_number(reader, "", root, "start_timeout_ms", TIMEOUT_MAX_MS, &description->start_timeout_ms) ||
        !read_number(reader, "", root, "settle_timeout_ms", TIMEOUT_MAX_MS, &description->settle_timeout_ms))
        return false;
    description->uses_redis = uses_redis(description);
    return check_start(reader, description);
}

/* The file's text with a 0 behind it, to be freed. NULL, having said why on stderr. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(FILE_MAX_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, FILE_MAX_BYTES, file) : 0;
    bool ok = text && !ferror(file);
    if (text)
        text[length] = 0;
    if (!ok)
        complain("cannot read %s: %s. `loadtest init` writes such a file", path, strerror(errno));
    else if (length == FILE_MAX_BYTES || strlen(text) != length)
        complain("%s is not a description of a service: it has 1 MB or more, or a NUL byte", path);
    if (file)
        fclose(file);
    if (ok && length < FILE_MAX_BYTES && strlen(text) == length) {
        if (strncmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
            memmove(text, text + 3, length - 2);
        return text;
    }
    free(text);
    return NULL;
}

static char *folder_of(const char *path)
{
    char *whole = realpath(path, NULL);
    char *folder = whole ? strdup(dirname(whole)) : NULL;
    free(whole);
    return folder;
}

bool shop_description_read(const char *path, struct shop_description *ret_description)
{
    struct reader reader = {.path = path};
    json_error_t error;
    *ret_description = (struct shop_description){.path = path,
                                                 .units = 1,
                                                 .timeout_ms = TIMEOUT_MS,
                                                 .start_timeout_ms = START_TIMEOUT_MS,
                                                 .settle_timeout_ms = SETTLE_TIMEOUT_MS};
    char *text = read_file(path);
    reader.text = text;
    ret_description->folder = text ? folder_of(path) : NULL;
    bool ok = text && ret_description->folder;
    if (ok) {
        ret_description->document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        if (!ret_description->document)
            complain("%s:%d: the file is not JSON: %s", path, error.line, error.text);
        else if (!json_is_object(ret_description->document))
            complain("%s:1: the file is %s. Write an object", path, kind_of(ret_description->document));
        ok = json_is_object(ret_description->document) &&
             read_members(&reader, ret_description->document, ret_description);
    } else if (text) {
        complain("cannot find the folder of %s: %s", path, strerror(errno));
    }
    ret_description->text = text;
    if (!ok)
        shop_description_free(ret_description);
    return ok;
}

void shop_description_free(struct shop_description *description)
{
    json_decref(description->document);
    free(description->text);
    free(description->folder);
    free(description->schema);
    free(description->body_text);
    free(description->reset_body_text);
    *description = (struct shop_description){0};
}
