/* Turns the JSON of etcd's gateway, with its keys in base64, into short texts: "txn if create_revision(k) = 0 then put(k, v)". */
#include "lock/etcd/client/recording.h"

#include "lock/etcd/client/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends to a stream the text that BASE64 stands for. */
static void put_text(FILE *out, const char *base64)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, count = 0;
    for (; base64 && *base64; base64++) {
        const char *digit = strchr(digits, *base64);
        if (!digit)
            break;
        bits = bits << 6 | (unsigned)(digit - digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            fputc((int)(bits >> count & 0xff), out);
        }
    }
}

static void put_member(FILE *out, const json_t *object, const char *name)
{
    put_text(out, json_string_value(json_object_get(object, name)));
}

/* As etcd's own tools print a lease. */
static void put_lease(FILE *out, int64_t id)
{
    fprintf(out, "lease %" PRIx64, (uint64_t)id);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void put_range(FILE *out, const json_t *range)
{
    const char *order = json_string_value(json_object_get(range, "sort_order"));
    fputs("get(", out);
    put_member(out, range, "key");
    fputs(json_object_get(range, "range_end") ? "*" : "", out);
    if (order)
        fprintf(out, ", %s created", strcmp(order, "DESCEND") == 0 ? "last" : "first");
    if (json_object_get(range, "max_create_revision"))
        fprintf(out, ", create_revision <= %" PRId64, etcd_number(range, "max_create_revision"));
    fputc(')', out);
}

static void put_operation(FILE *out, const json_t *operation)
{
    const json_t *put = json_object_get(operation, "request_put"),
                 *delete = json_object_get(operation, "request_delete_range");
    if (put) {
        fputs("put(", out);
        put_member(out, put, "key");
        if (json_object_get(put, "value")) {
            fputs(", ", out);
            put_member(out, put, "value");
        }
        fputs(", ", out);
        put_lease(out, etcd_number(put, "lease"));
        fputc(')', out);
    } else if (delete) {
        fputs("delete(", out);
        put_member(out, delete, "key");
        fputc(')', out);
    } else {
        put_range(out, json_object_get(operation, "request_range"));
    }
}

static void put_operations(FILE *out, const char *before, const json_t *operations)
{
    size_t i;
    const json_t *operation;
    json_array_foreach((json_t *)operations, i, operation) {
        fputs(i ? ", " : before, out);
        put_operation(out, operation);
    }
}

static void put_comparison(FILE *out, const json_t *comparison)
{
    const char *target = json_string_value(json_object_get(comparison, "target"));
    bool of_value = target && strcmp(target, "VALUE") == 0;
    fputs(of_value ? "value(" : "create_revision(", out);
    put_member(out, comparison, "key");
    fputs(") = ", out);
    if (of_value)
        put_member(out, comparison, "value");
    else
        fprintf(out, "%" PRId64, etcd_number(comparison, "create_revision"));
}

static void put_request(FILE *out, const char *path, const json_t *request)
{
    const json_t *comparison = json_array_get(json_object_get(request, "compare"), 0);
    const char *name = strrchr(path, '/') + 1;
    if (strcmp(name, "grant") == 0) {
        fprintf(out, "lease grant, TTL %" PRId64 " s", etcd_number(request, "TTL"));
    } else if (strcmp(name, "revoke") == 0 || strcmp(name, "keepalive") == 0) {
        put_lease(out, etcd_number(request, "ID"));
        fprintf(out, " %s", name);
    } else if (strcmp(name, "watch") == 0) {
        fputs("watch(", out);
        put_member(out, json_object_get(request, "create_request"), "key");
        fputs("), for its deletion", out);
    } else if (strcmp(name, "range") == 0) {
        put_range(out, request);
    } else {
        fputs("txn", out);
        if (comparison) {
            fputs(" if ", out);
            put_comparison(out, comparison);
        }
        put_operations(out, comparison ? " then " : " ", json_object_get(request, "success"));
        put_operations(out, " else ", json_object_get(request, "failure"));
    }
}

unsigned etcd_record_request(const void *connection, const char *path, const json_t *request)
{
    char *text = NULL;
    size_t size;
    FILE *out = thread_recorder ? open_memstream(&text, &size) : NULL;
    unsigned number = 0;
    if (!out)
        return 0;
    put_request(out, path, request);
    if (fclose(out) == 0)
        number = record_request("etcd", connection, text, NULL, 0);
    free(text);
    return number;
}

/* ---- replies ---------------------------------------------------------------------------------------------------- */

static void put_found(FILE *out, const json_t *range)
{
    const json_t *found = json_array_get(json_object_get(range, "kvs"), 0);
    if (!found) {
        fputs("no key", out);
        return;
    }
    put_member(out, found, "key");
    if (json_object_get(found, "value")) {
        fputs(" = ", out);
        put_member(out, found, "value");
    }
    fprintf(out, " (create_revision %" PRId64 ")", etcd_number(found, "create_revision"));
}

static void put_response(FILE *out, const json_t *response)
{
    const json_t *deleted = json_object_get(response, "response_delete_range");
    if (json_object_get(response, "response_put"))
        fputs("put", out);
    else if (deleted)
        fprintf(out, "deleted %" PRId64, etcd_number(deleted, "deleted"));
    else
        put_found(out, json_object_get(response, "response_range"));
}

static void put_reply(FILE *out, const json_t *reply)
{
    const json_t *responses = json_object_get(reply, "responses"), *response;
    const json_t *kept_alive = json_object_get(reply, "result");
    size_t i;
    if (etcd_number(reply, "ID") || kept_alive) {
        const json_t *lease = kept_alive ? kept_alive : reply;
        put_lease(out, etcd_number(lease, "ID"));
        fprintf(out, ", TTL %" PRId64 " s", etcd_number(lease, "TTL"));
    } else if (responses || json_object_get(reply, "succeeded")) {
        fputs(etcd_succeeded(reply) ? "then" : "else", out);
        json_array_foreach((json_t *)responses, i, response) {
            fputs(i ? ", " : ": ", out);
            put_response(out, response);
        }
        fprintf(out, "; revision %" PRId64, etcd_revision(reply));
    } else if (json_object_get(reply, "count") || json_object_get(reply, "kvs")) {
        fprintf(out, "%" PRId64 " keys", etcd_number(reply, "count"));
    } else {
        fputs("OK", out);
    }
}

void etcd_record_reply(unsigned request, enum lock_status status, const json_t *reply, const char *error)
{
    char *text = NULL;
    size_t size;
    FILE *out = request ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    if (status == LOCK_OK)
        put_reply(out, reply);
    else
        fputs(error, out);
    if (fclose(out) == 0)
        record_answer(request, text);
    free(text);
}
