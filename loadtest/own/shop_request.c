/* One HTTP request to a user's service, as its description has it. */
#include "loadtest/own/shop_request.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/client/http_request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shop_connection {
    CURL *curl;
    bool sent; /* the current request */
    struct shop_answer *answer;
    size_t length;
};

struct shop_connection *shop_connection_open(void)
{
    struct shop_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->curl = curl_easy_init();
    if (connection->curl)
        return connection;
    free(connection);
    return NULL;
}

void shop_connection_close(struct shop_connection *connection)
{
    if (!connection)
        return;
    curl_easy_cleanup(connection->curl);
    free(connection);
}

/* Keeps the beginning as one line of printable text. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t receive(char *data, size_t size, size_t count, void *context)
{
    struct shop_connection *connection = context;
    for (size_t i = 0; i < size * count && connection->length < SHOP_ANSWER_KEPT; i++)
        connection->answer->text[connection->length++] = iscntrl((unsigned char)data[i]) ? (char)' '
                                                                                         : data[i];
    connection->answer->text[connection->length] = '\0';
    return size * count;
}

/* Libcurl sends a request again where a connection that it has kept breaks. That would be a second order. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static int send_once(void *context, char *to, char *from, int to_port, int from_port)
{
    struct shop_connection *connection = context;
    (void)to, (void)from, (void)to_port, (void)from_port;
    if (connection->sent)
        return CURL_PREREQFUNC_ABORT;
    connection->sent = true;
    return CURL_PREREQFUNC_OK;
}

static int end_at_interrupt(void *context, curl_off_t to_get, curl_off_t got, curl_off_t to_send,
                            curl_off_t sent)
{
    (void)context, (void)to_get, (void)got, (void)to_send, (void)sent;
    return interrupted() != 0;
}

/* The headers, with a Content-Type where the body is JSON and none is given; to be freed. False: out of memory. */
static bool make_headers(const json_t *request, const struct placeholder *values,
                         struct curl_slist **ret_headers)
{
    const char *name;
    json_t *value;
    const json_t *body = json_object_get(request, "body");
    bool has_type = !body || json_is_string(body), well = true;
    *ret_headers = NULL;
    json_object_foreach(json_object_get(request, "headers"), name, value) {
        char *text = description_expand(json_string_value(value), values), *line = NULL;
        struct curl_slist *longer = NULL;
        if (text && asprintf(&line, "%s: %s", name, text) > 0)
            longer = curl_slist_append(*ret_headers, line);
        well = well && longer;
        *ret_headers = longer ? longer : *ret_headers;
        has_type |= strcasecmp(name, "Content-Type") == 0;
        free(text);
        free(line);
    }
    struct curl_slist *longer = has_type ? NULL
                                         : curl_slist_append(*ret_headers, "Content-Type: application/json");
    *ret_headers = longer ? longer : *ret_headers;
    return well && (has_type || longer);
}

/* The body with its placeholders, to be freed; NULL: out of memory. "" where there is none. */
static char *make_body(const json_t *request, const struct placeholder *values)
{
    const json_t *body = json_object_get(request, "body");
    char *text = !body                  ? strdup("")
                 : json_is_string(body) ? strdup(json_string_value(body))
                                        : json_dumps(body, JSON_COMPACT);
    char *expanded = text ? description_expand(text, values) : NULL;
    free(text);
    return expanded;
}

static void perform(struct shop_connection *connection, struct shop_answer *ret_answer)
{
    char error[CURL_ERROR_SIZE] = "";
    int64_t begun_us = monotonic_us();
    *ret_answer = (struct shop_answer){0};
    connection->answer = ret_answer;
    connection->length = 0;
    connection->sent = false;
    curl_easy_setopt(connection->curl, CURLOPT_ERRORBUFFER, error);
    CURLcode code = curl_easy_perform(connection->curl);
    ret_answer->us = monotonic_us() - begun_us;
    if (code == CURLE_OK)
        curl_easy_getinfo(connection->curl, CURLINFO_RESPONSE_CODE, &ret_answer->status);
    else
        snprintf(ret_answer->text, sizeof ret_answer->text, "%.*s", SHOP_ANSWER_KEPT,
                 *error ? error : curl_easy_strerror(code));
    curl_easy_setopt(connection->curl, CURLOPT_ERRORBUFFER, NULL);
}

bool shop_request_send(struct shop_connection *connection, const json_t *request,
                       const struct placeholder *values, int64_t timeout_ms, struct shop_answer *ret_answer)
{
    const char *method = json_string_value(json_object_get(request, "method"));
    struct curl_slist *headers = NULL;
    char *url = description_expand(json_string_value(json_object_get(request, "url")), values);
    char *body = make_body(request, values);
    bool well = url && body && make_headers(request, values, &headers);
    if (well) {
        CURL *curl = connection->curl;
        curl_easy_reset(curl); /* keeps the connection */
        http_request_prepare(curl, url, headers, (long)timeout_ms, receive, connection);
        curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, send_once);
        curl_easy_setopt(curl, CURLOPT_PREREQDATA, connection);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, end_at_interrupt);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        if (*body)
            curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        else if (method && strcmp(method, "POST") == 0)
            curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
        if (method)
            curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
        perform(connection, ret_answer);
    } else {
        complain("out of memory");
    }
    curl_slist_free_all(headers);
    free(url);
    free(body);
    return well;
}
