/* Reading a Redis server's address: the URLs that redis-cli and redis-py understand, no more, and strictly. */
#include "lock/redis/client/url.h"

#include <stdio.h>
#include <string.h>

/* A piece of the URL. */
struct piece {
    const char *at;
    size_t length;
};

/* Cuts off what stands before the first byte of STOPS; the rest, which begins with that byte, stays in FROM. */
static struct piece cut(struct piece *from, const char *stops)
{
    size_t length = 0;
    while (length < from->length && !strchr(stops, from->at[length]))
        length++;
    struct piece first = {from->at, length};
    from->at += length;
    from->length -= length;
    return first;
}

static bool begins(const struct piece *piece, const char *with)
{
    size_t length = strlen(with);
    return piece->length >= length && memcmp(piece->at, with, length) == 0;
}

/* Takes WITH off the beginning of FROM, where it stands there. */
static bool skip(struct piece *from, const char *with)
{
    if (!begins(from, with))
        return false;
    from->at += strlen(with);
    from->length -= strlen(with);
    return true;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) % 16 : -1;
}

/* Percent-decodes into SIZE bytes. False for a broken escape, a NUL, a bare blank or control character, or too many
 * bytes. */
static bool decode(struct piece from, char *ret_text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < from.length; i++) {
        char c = from.at[i];
        bool escaped = c == '%';
        if (escaped) {
            int high = i + 2 < from.length ? hex_digit(from.at[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(from.at[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (!c || (!escaped && ((unsigned char)c <= ' ' || c == 127)) || used + 1 >= size)
            return false;
        ret_text[used++] = c;
    }
    ret_text[used] = '\0';
    return true;
}

/* A number without sign or blanks, at most MOST. */
static bool read_number(struct piece from, int most, int *ret_number)
{
    int number = 0;
    if (from.length == 0)
        return false;
    for (size_t i = 0; i < from.length; i++) {
        if (from.at[i] < '0' || from.at[i] > '9' || number > (most - (from.at[i] - '0')) / 10)
            return false;
        number = number * 10 + (from.at[i] - '0');
    }
    *ret_number = number;
    return true;
}

/* [[user]:password@] where it stands; the rest stays in FROM. */
static bool read_login(struct piece *from, struct redis_url *url, const char **ret_error)
{
    struct piece rest = *from, login = cut(&rest, "@/?");
    if (!begins(&rest, "@"))
        return true;
    struct piece user = cut(&login, ":");
    *ret_error = "before the @ belongs USER:PASSWORD, or :PASSWORD for the default user";
    if (!skip(&login, ":"))
        return false;
    *ret_error = "the user or the password is too long, or has a broken %-escape or a bare blank";
    if (!decode(user, url->user, sizeof url->user) || !decode(login, url->password, sizeof url->password))
        return false;
    *from = rest;
    (void)skip(from, "@");
    return true;
}

static bool read_host(struct piece *from, struct redis_url *url, const char **ret_error)
{
    bool bracketed = skip(from, "[");
    struct piece host = cut(from, bracketed ? "]" : ":/?");
    *ret_error = "the host is too long, or not well written";
    if ((bracketed && !skip(from, "]")) || !decode(host, url->host, sizeof url->host))
        return false;
    if (!*url->host)
        snprintf(url->host, sizeof url->host, "localhost");
    int port = 6379;
    if (skip(from, ":")) {
        *ret_error = "the port is not a number from 1 to 65535";
        if (!read_number(cut(from, "/?"), 65535, &port) || port == 0)
            return false;
    }
    snprintf(url->port, sizeof url->port, "%hu", (unsigned short)port);
    snprintf(url->place, sizeof url->place, bracketed ? "[%s]:%s" : "%s:%s", url->host, url->port);
    return true;
}

static bool read_path(struct piece *from, struct redis_url *url, const char **ret_error)
{
    struct piece path = cut(from, "?");
    *ret_error = "the socket's path does not begin with /, is longer than 107 bytes, or is not well written";
    if (!begins(&path, "/") || !decode(path, url->path, sizeof url->path))
        return false;
    snprintf(url->place, sizeof url->place, "%s", url->path);
    return true;
}

bool redis_url_read(const char *url, size_t size, struct redis_url *ret_url, const char **ret_error)
{
    enum { MOST_DATABASES = 1000000 };
    struct piece rest = {url, size};
    struct redis_url read = {.database = 0};
    bool is_unix = skip(&rest, "unix://");
    read.tls = !is_unix && skip(&rest, "rediss://");
    *ret_error = "it begins with neither redis://, rediss:// nor unix://";
    if (!is_unix && !read.tls && !skip(&rest, "redis://"))
        return false;
    if (!read_login(&rest, &read, ret_error))
        return false;
    if (!(is_unix ? read_path : read_host)(&rest, &read, ret_error))
        return false;
    *ret_error = is_unix ? "behind the path may stand only ?db=NUMBER"
                         : "behind the host may stand only /DATABASE, a number";
    if (skip(&rest, is_unix ? "?db=" : "/") && (is_unix || rest.length > 0) &&
        !read_number(cut(&rest, ""), MOST_DATABASES, &read.database))
        return false;
    if (rest.length > 0)
        return false;
    *ret_url = read;
    return true;
}
