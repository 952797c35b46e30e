/* Reads shop.json, which tells the load test about a user's service: how to start it, its requests, and where its stock is. */
#include "loadtest/own/description.h"

#include "loadtest/cli/complain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 20, LIST_MAX = 64, UNITS_MAX = 1000000 };

/* ---- the members ---------------------------------------------------------------------------------------------- */

/* What the value of a member has to be. */
enum shape { TEXT, TEXTS, TEXT_MAP, STATUSES, UNITS, YES_OR_NO, REQUEST, TEXTS_OR_REQUEST };

static const char *const SHAPES[] = {
    [TEXT] = "a text that is not empty",
    [TEXTS] = "a list of texts, with at least one",
    [TEXT_MAP] = "an object whose values are texts",
    [STATUSES] = "a list of HTTP statuses from 100 to 599",
    [UNITS] = "a whole number from 1 to 1000000",
    [YES_OR_NO] = "true or false",
    [REQUEST] = "an object with url, and if needed method, headers and body",
    [TEXTS_OR_REQUEST] =
        "a list of SQL statements, or an object with url, and if needed method, headers and body",
};

struct member {
    const char *name;
    enum shape shape;
    bool is_required;
};

static const struct member MEMBERS[] = {
    {"start", TEXTS, false},           {"env", TEXT_MAP, false},   {"ready", TEXT, false},
    {"database", TEXT, false},         {"schema", TEXT, false},    {"redis", YES_OR_NO, false},
    {"reset", TEXTS_OR_REQUEST, true}, {"request", REQUEST, true}, {"sold_out", STATUSES, true},
    {"units", UNITS, false},           {"stock", TEXT, true},      {"sold", TEXT, true},
    {"invariant", TEXTS, false},
};

static const struct member REQUEST_MEMBERS[] = {
    {"method", TEXT, false},
    {"url", TEXT, true},
    {"headers", TEXT_MAP, false},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool is_text(const json_t *value)
{
    return json_is_string(value) && *json_string_value(value);
}

static bool are_texts(const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        if (!is_text(item))
            return false;
    }
    return json_array_size(value) > 0 && json_array_size(value) <= LIST_MAX;
}

static bool is_text_map(const json_t *value)
{
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)value, name, item) {
        if (!*name || strchr(name, '=') || !json_is_string(item))
            return false;
    }
    return json_is_object(value) && json_object_size(value) <= LIST_MAX;
}

static bool are_statuses(const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        if (!json_is_integer(item) || json_integer_value(item) < 100 || json_integer_value(item) > 599)
            return false;
    }
    return json_is_array(value) && json_array_size(value) <= LIST_MAX;
}

static bool has_shape(const json_t *value, enum shape shape)
{
    switch (shape) {
    case TEXT: return is_text(value);
    case TEXTS: return are_texts(value);
    case TEXT_MAP: return is_text_map(value);
    case STATUSES: return are_statuses(value);
    case UNITS:
        return json_is_integer(value) && json_integer_value(value) >= 1 &&
               json_integer_value(value) <= UNITS_MAX;
    case YES_OR_NO: return json_is_boolean(value);
    case REQUEST: return json_is_object(value);
    case TEXTS_OR_REQUEST: return json_is_object(value) || are_texts(value);
    }
    return false;
}

/* ---- complaints ------------------------------------------------------------------------------------------------- */

/* A file that is being read, for messages. */
struct source {
    const char *path;
    char *text;
};

/* The line of the first "NAME" in the text, from 1; jansson does not keep it. The names of members are unusual as values. */
static int line_of(const struct source *source, const char *name)
{
    char quoted[80];
    int line = 1;
    snprintf(quoted, sizeof quoted, "\"%.60s\"", name);
    const char *at = strstr(source->text, quoted);
    for (const char *c = source->text; at && c < at; c++)
        line += *c == '\n';
    return line;
}

static bool wrong_shape(const struct source *source, const char *of, const char *name, enum shape shape)
{
    complain("%s:%d: %s%s must be %s", source->path, line_of(source, name), of, name, SHAPES[shape]);
    return false;
}

/* Are the members of OBJECT those of the COUNT rows of TABLE? "//" and what begins so is a comment; one more name may be ALSO. OF:
 * stands before a member's name in messages. */
static bool check_members(const struct source *source, const json_t *object, const struct member *table,
                          size_t count, const char *of, const char *also)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        size_t i = 0;
        while (i < count && strcmp(table[i].name, name) != 0)
            i++;
        if (i < count && !has_shape(value, table[i].shape))
            return wrong_shape(source, of, name, table[i].shape);
        if (i == count && strncmp(name, "//", 2) != 0 && (!also || strcmp(name, also) != 0)) {
            complain(
                "%s:%d: %s%.60s is no member of a description; `loadtest init` writes an example with all of them",
                source->path, line_of(source, name), of, name);
            return false;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (table[i].is_required && !json_object_get(object, table[i].name)) {
            complain("%s: %s%s is missing; it is %s", source->path, of, table[i].name,
                     SHAPES[table[i].shape]);
            return false;
        }
    return true;
}

static bool check_request(const struct source *source, const json_t *request, const char *of)
{
    static const char *const METHODS[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    const char *url = json_string_value(json_object_get(request, "url"));
    const char *method = json_string_value(json_object_get(request, "method"));
    const json_t *body = json_object_get(request, "body");
    if (!check_members(source, request, REQUEST_MEMBERS, COUNT(REQUEST_MEMBERS), of, "body"))
        return false;
    bool is_method = !method;
    for (size_t i = 0; i < COUNT(METHODS) && !is_method; i++)
        is_method = strcmp(method, METHODS[i]) == 0;
    if (!is_method)
        complain("%s:%d: %smethod must be GET, POST, PUT, PATCH or DELETE", source->path,
                 line_of(source, "method"), of);
    else if (strncmp(url, "http://", 7) != 0)
        complain("%s:%d: %surl must begin with http://", source->path, line_of(source, "url"), of);
    else if (body && !json_is_string(body) && !json_is_object(body) && !json_is_array(body))
        complain("%s:%d: %sbody must be a text, or JSON: an object or a list", source->path,
                 line_of(source, "body"), of);
    else
        return true;
    return false;
}

/* What holds between members. */
static bool check_together(const struct source *source, const struct description *description)
{
    if (description->start && !description->ready)
        complain(
            "%s: start needs ready, a URL that answers with a status below 400 as soon as the service is ready",
            source->path);
    else if (description->env && !description->start)
        complain("%s:%d: env needs start: only a service that the command starts gets an environment",
                 source->path, line_of(source, "env"));
    else if (!description->start && !description->database)
        complain("%s: a service that runs already has a database; give its address as database",
                 source->path);
    else if (description->database && description->schema)
        complain("%s:%d: schema is for the private PostgreSQL; remove it, or database", source->path,
                 line_of(source, "schema"));
    else if (description->database && strncmp(description->database, "postgresql://", 13) != 0 &&
             strncmp(description->database, "postgres://", 11) != 0)
        complain("%s:%d: database must begin with postgresql://", source->path, line_of(source, "database"));
    else
        return true;
    return false;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* The text of the file with a 0 behind it, to be freed; NULL, having said why on stderr. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = malloc(FILE_MAX + 1);
    if (!file)
        complain("cannot open %s: %s; `loadtest init` writes an example", path, strerror(errno));
    size_t length = file && text ? fread(text, 1, FILE_MAX + 1, file) : 0;
    bool well = file && text && !ferror(file) && length <= FILE_MAX;
    if (file && !well)
        complain("cannot read %s: %s", path,
                 !text          ? "out of memory"
                 : ferror(file) ? strerror(errno)
                                : "it has more than 1 MiB");
    if (file)
        fclose(file);
    if (!well) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

static void take_members(struct description *description)
{
    const json_t *document = description->document;
    const json_t *units = json_object_get(document, "units");
    description->start = json_object_get(document, "start");
    description->env = json_object_get(document, "env");
    description->ready = json_string_value(json_object_get(document, "ready"));
    description->database = json_string_value(json_object_get(document, "database"));
    description->schema = json_string_value(json_object_get(document, "schema"));
    description->redis = json_is_true(json_object_get(document, "redis"));
    description->reset = json_object_get(document, "reset");
    description->request = json_object_get(document, "request");
    description->sold_out = json_object_get(document, "sold_out");
    description->units = units ? json_integer_value(units) : 1;
    description->stock = json_string_value(json_object_get(document, "stock"));
    description->sold = json_string_value(json_object_get(document, "sold"));
    description->invariant = json_object_get(document, "invariant");
}

static bool find_folder(const char *path, char *ret_folder)
{
    if (!realpath(path, ret_folder)) {
        complain("cannot find the folder of %s: %s", path, strerror(errno));
        return false;
    }
    char *last = strrchr(ret_folder, '/');
    last[last == ret_folder] = '\0';
    return true;
}

static bool parse(const struct source *source, struct description *description)
{
    json_error_t error;
    description->document = json_loads(source->text, JSON_REJECT_DUPLICATES, &error);
    if (!description->document)
        complain("%s:%d: this is no JSON: %s", source->path, error.line, error.text);
    else if (!json_is_object(description->document))
        complain("%s: this must be a JSON object", source->path);
    else if (check_members(source, description->document, MEMBERS, COUNT(MEMBERS), "", NULL)) {
        take_members(description);
        return check_request(source, description->request, "request.") &&
               (!json_is_object(description->reset) || check_request(source, description->reset, "reset.")) &&
               check_together(source, description);
    }
    return false;
}

bool description_load(const char *path, struct description *ret_description)
{
    struct source source = {path, read_file(path)};
    *ret_description = (struct description){0};
    bool well = source.text && find_folder(path, ret_description->folder) && parse(&source, ret_description);
    free(source.text);
    if (!well)
        description_close(ret_description);
    return well;
}

void description_close(struct description *description)
{
    json_decref(description->document);
    *description = (struct description){0};
}

/* ---- placeholders ------------------------------------------------------------------------------------------------- */

/* The value for the placeholder at AT, which is a brace, and in *ret_length its length; NULL: there is none. */
static const char *value_at(const char *at, const struct placeholder *values, size_t *ret_length)
{
    for (; values->name; values++) {
        size_t length = strlen(values->name);
        if (strncmp(at + 1, values->name, length) == 0 && at[length + 1] == '}') {
            *ret_length = length + 2;
            return values->value;
        }
    }
    return NULL;
}

char *description_expand(const char *text, const struct placeholder *values)
{
    char *expanded = NULL;
    size_t size, length;
    FILE *out = open_memstream(&expanded, &size);
    while (out && *text) {
        const char *value = *text == '{' ? value_at(text, values, &length) : NULL;
        if (value) {
            fputs(value, out);
            text += length;
        } else {
            fputc(*text++, out);
        }
    }
    if (out && fclose(out) == 0)
        return expanded;
    free(expanded);
    return NULL;
}

const char description_example[] =
    "{\n"
    "  \"//\": \"Describes a service that sells, for `loadtest check`. Names that begin with // are comments.\",\n"
    "\n"
    "  \"// start\": \"The program and its arguments. Without start the service runs already; then database is its database.\",\n"
    "  \"start\": [\"python3\", \"server.py\"],\n"
    "  \"env\": {\"PORT\": \"{port}\", \"DATABASE_URL\": \"{postgres}\"},\n"
    "  \"ready\": \"http://127.0.0.1:{port}/healthz\",\n"
    "\n"
    "  \"// schema\": \"The tables and products, for a private PostgreSQL. Use database: postgresql://… for one that runs.\",\n"
    "  \"schema\": \"schema.sql\",\n"
    "  \"// redis\": \"true: the service needs Redis; its address is {redis}\",\n"
    "  \"redis\": false,\n"
    "\n"
    "  \"// reset\": \"SQL statements, or a request like the one below. They set the stock to {stock}, and delete the orders.\",\n"
    "  \"reset\": [\n"
    "    \"DELETE FROM order_item\",\n"
    "    \"UPDATE product SET count = {stock} WHERE id = 1\"\n"
    "  ],\n"
    "\n"
    "  \"// request\": \"Orders one unit. {number} is different in each request. units: how many it orders, if not one.\",\n"
    "  \"request\": {\n"
    "    \"method\": \"POST\",\n"
    "    \"url\": \"http://127.0.0.1:{port}/orders\",\n"
    "    \"headers\": {\"Content-Type\": \"application/json\"},\n"
    "    \"body\": {\"product_id\": 1, \"quantity\": 1}\n"
    "  },\n"
    "  \"// sold_out\": \"The statuses that mean no. 200 to 299 mean that the order was placed.\",\n"
    "  \"sold_out\": [409],\n"
    "\n"
    "  \"// stock\": \"Each of these is one number: the units left, and the units sold.\",\n"
    "  \"stock\": \"SELECT count FROM product WHERE id = 1\",\n"
    "  \"sold\": \"SELECT coalesce(sum(quantity), 0) FROM order_item WHERE product_id = 1\",\n"
    "  \"// invariant\": \"Each must be true after the sale.\",\n"
    "  \"invariant\": [\"SELECT count >= 0 FROM product WHERE id = 1\"]\n"
    "}\n";
