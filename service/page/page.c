/* The workshop page: its files, carried in the binary, and the headers that keep it to itself. */
#include "base/hash.h"
#include "service/api/api.h"
#include "service/http/host_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Only what this service serves: nothing inline, nothing from elsewhere, and in nobody's frame. */
static const char CONTENT_POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* The makefile lists the files: PAGE_FILES(X) calls X(label, "folder/name", "file to embed", "the same with gzip") for each.
 * page.S embeds them. */
#include "page_files.h"

#define DECLARE(label, name, source, gz)                                                                     \
    extern const char page_##label[], page_##label##_end[], page_##label##_gz[], page_##label##_gz_end[];
PAGE_FILES(DECLARE)

static const struct page_file {
    const char *name, *begin, *end, *gz, *gz_end;
} files[] = {
#define ROW(label, name, source, gz)                                                                         \
    {name, page_##label, page_##label##_end, page_##label##_gz, page_##label##_gz_end},
    PAGE_FILES(ROW){0}};

static const char *content_type(const char *name)
{
    static const struct {
        const char *ending, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".svg", "image/svg+xml"},
                 {".json", "application/json"}};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < sizeof types / sizeof *types; i++) {
        if (strcmp(ending, types[i].ending) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

/* Another build's file has another tag, whatever its size and date. */
static uint64_t hash(const char *begin, const char *end)
{
    return hash_add(HASH_OF_NOTHING, begin, (size_t)(end - begin));
}

/* Browsers obey Cross-Origin-Opener-Policy on pages of HTTPS and of this machine alone, and complain about it on others. */
static bool is_trustworthy(const struct exchange *x)
{
    const char *host = http_header(x, "Host"), *scheme = http_header(x, "X-Forwarded-Proto");
    return (host && host_is_loopback(host)) || (scheme && strncasecmp(scheme, "https", 5) == 0);
}

static void set_headers(struct exchange *x, const char *tag)
{
    http_set_header(x, "ETag", "%s", tag);
    http_set_fixed_header(x, "Vary", "Accept-Encoding");
    http_set_header(x, "Cache-Control",
                    "no-cache"); /* kept, but asked for each time whether it is still the same */
    http_set_fixed_header(x, "Content-Security-Policy", CONTENT_POLICY);
    http_set_fixed_header(x, "Referrer-Policy", "no-referrer");
    http_set_fixed_header(x, "X-Frame-Options", "DENY");
    if (is_trustworthy(x))
        http_set_fixed_header(x, "Cross-Origin-Opener-Policy", "same-origin");
    http_set_fixed_header(x, "Cross-Origin-Resource-Policy", "same-origin");
}

/* As browsers ask: with gzip in the list, and no weights. */
static bool accepts_gzip(const struct exchange *x)
{
    const char *accepted = http_header(x, "Accept-Encoding");
    return accepted && strstr(accepted, "gzip") && !strstr(accepted, "q=");
}

static void reply_file(struct exchange *x, const char *name)
{
    const struct page_file *file = files;
    while (file->name && strcmp(file->name, name) != 0)
        file++;
    if (!file->name) {
        reply_problem(x, PROBLEM_NOT_FOUND, NULL, "the page has no such file");
        return;
    }
    char tag[24];
    bool gz = accepts_gzip(x);
    const char *begin = gz ? file->gz : file->begin, *end = gz ? file->gz_end : file->end;
    snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", hash(begin, end));
    const char *known = http_header(x, "If-None-Match");
    size_t size = (size_t)(end - begin);
    char *copy = NULL;
    if (known && strstr(known, tag)) {
        http_reply_body(x, 304, NULL, NULL, 0);
    } else if ((copy = malloc(size + 1)) != NULL) {
        memcpy(copy, begin, size);
        http_reply_body(x, 200, content_type(name), copy, size);
        if (gz)
            http_set_fixed_header(x, "Content-Encoding", "gzip");
    } else {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
        return;
    }
    set_headers(x, tag);
}

void page_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    reply_file(x, "workshop/index.html");
}

void steps_page(struct exchange *x, struct worker *worker)
{
    (void)worker;
    reply_file(x, "steps/steps.html");
}

void lessons_page(struct exchange *x, struct worker *worker)
{
    (void)worker;
    reply_file(x, "lessons/index.html");
}

void lessons_get(struct exchange *x, struct worker *worker)
{
    (void)worker;
    char name[sizeof x->argument + sizeof "lessons/.html"];
    snprintf(name, sizeof name, "lessons/%s.html", x->argument);
    reply_file(x, name);
}

void class_page(struct exchange *x, struct worker *worker)
{
    (void)worker;
    reply_file(x, "class/board.html");
}

void page_get_file(struct exchange *x, struct worker *worker)
{
    (void)worker;
    reply_file(x, x->argument);
}
