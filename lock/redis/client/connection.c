/* Requests to one Redis server, each within one absolute time limit.
 *
 * hiredis writes the protocol and reads it; connecting and waiting are done here, since hiredis limits each read by
 * itself, so that a server that drips its reply byte by byte could keep a caller for ever. A connection whose reply
 * is overdue is closed: the reply to one request must never be taken for the reply to the next. */
#include "lock/redis/client/connection.h"
#include "base/clock.h"
#include "base/text.h"

#include "lock/redis/client/recording.h"
#include "lock/redis/client/reply.h"
#include "lock/redis/client/socket.h"
#include "lock/redis/client/tls.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PAUSE_MS = 50, LONGEST_PAUSE_MS = 500 }; /* after the second failure to connect, and doubled */
enum { PLACES = 64 };

/* How many connections this process has made to each server, by a hash of its place; two servers may share a number. A
 * connection that rests after a failure tries again when it sees that another one succeeded: a caller that was served through
 * one connection must not be refused through the next. */
static atomic_uint connections_made[PLACES];

struct redis {
    struct redis_url url;
    const struct redis_bounds *bounds; /* of its replies */
    const char *url_error;             /* why the URL cannot be used; NULL where it can */
    redisContext *context;             /* NULL: not connected */
    atomic_uint *made;                 /* the number of connections_made that belongs to this server … */
    unsigned made_before;              /* … and what it was at the last try to connect */
    bool refused;     /* so did the last try to connect fail: said again while the pause after it lasts */
    int64_t pause_ms; /* 0: the next failure is the first, and the try after it comes at once */
    int64_t pause_ends_us;
    bool sent;
    char error[200];
};

struct redis *redis_new(const char *url, size_t size)
{
    struct redis *redis = calloc(1, sizeof *redis);
    if (redis)
        redis->bounds = &redis_short_replies;
    if (redis && redis_url_read(url, size, &redis->url, &redis->url_error))
        redis->url_error = NULL;
    if (redis)
        redis->made = &connections_made[text_hash(redis->url.place) % PLACES];
    return redis;
}

void redis_allow_long_replies(struct redis *redis)
{
    redis->bounds = &redis_long_replies;
}

void redis_drop(struct redis *redis)
{
    if (redis->context)
        redisFree(redis->context);
    redis->context = NULL;
}

void redis_free(struct redis *redis)
{
    if (!redis)
        return;
    redis_drop(redis);
    explicit_bzero(&redis->url, sizeof redis->url);
    free(redis);
}

bool redis_was_sent(const struct redis *redis)
{
    return redis->sent;
}

const char *redis_error(const struct redis *redis)
{
    return redis->error;
}

__attribute__((format(printf, 2, 3))) static void note(struct redis *redis, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(redis->error, sizeof redis->error, "redis%s%.80s: ", *redis->url.place ? " at " : "",
                        redis->url.place);
    vsnprintf(redis->error + used, sizeof redis->error - (size_t)used, format, arguments);
    va_end(arguments);
}

/* Notes what went wrong, and is STATUS. */
#define fail(redis, status, ...) (note((redis), __VA_ARGS__), (status))

/* Hands STATUS and, where it is an error, its words to the caller's lock. */
static enum lock_status tell(const struct redis *redis, struct lock *lock, enum lock_status status)
{
    return status == LOCK_OK || !lock ? status : lock_fail(lock, status, "%s", redis->error);
}

/* ---- one request and its reply on an open connection ------------------------------------------------------ */

bool redis_send(struct redis *redis, const char *bytes, size_t size, int64_t until_us)
{
    return redis->url.tls ? redis_tls_send(redis->context, bytes, size, until_us)
                          : redis_socket_send(redis->context->fd, bytes, size, until_us);
}

static enum lock_status receive(struct redis *redis, int64_t until_us, redisReply **ret_reply)
{
    while (redis_reply_next(redis->context, ret_reply)) {
        if (*ret_reply)
            return LOCK_OK;
        if (!redis_socket_wait(redis->context->fd, POLLIN, until_us))
            return fail(redis, LOCK_AWAY, "no reply: %s", strerrordesc_np(errno));
        if (!redis_reply_read(redis->context))
            break;
    }
    return fail(redis, LOCK_AWAY, "no reply: %s", redis->context->errstr);
}

/* Sends what hiredis has laid out, which is freed here, and waits for the reply: an error reply is LOCK_REFUSED. */
static enum lock_status exchange(struct redis *redis, struct lock *lock, int64_t until_us, char *request,
                                 long long size, redisReply **ret_reply)
{
    if (size < 0)
        return fail(redis, LOCK_FAILED, "out of memory, or a wrong format");
    AUTO_REPLY reply = NULL;
    enum lock_status status = LOCK_OK;
    if (lock)
        lock->round_trips++;
    redis->sent = true;
    if (!redis_send(redis, request, (size_t)size, until_us))
        status = fail(redis, LOCK_AWAY, "cannot send: %s", strerrordesc_np(errno));
    redisFreeCommand(request);
    if (status == LOCK_OK)
        status = receive(redis, until_us, &reply);
    if (status != LOCK_OK) {
        redis_drop(redis);
        return status;
    }
    if (reply->type == REDIS_REPLY_ERROR)
        return fail(redis, LOCK_REFUSED, "%s", reply->str);
    *ret_reply = reply;
    reply = NULL;
    return LOCK_OK;
}

/* ---- connecting -------------------------------------------------------------------------------------------- */

/* Who we are, and which database: the first requests on each connection. */
static enum lock_status introduce(struct redis *redis, struct lock *lock, int64_t until_us)
{
    const struct redis_url *url = &redis->url;
    const char *login[] = {"AUTH", *url->user ? url->user : url->password, url->password};
    enum lock_status status = LOCK_OK;
    char *request = NULL;
    if (*url->user || *url->password) {
        AUTO_REPLY reply = NULL;
        long long size = redisFormatCommandArgv(&request, *url->user ? 3 : 2, login, NULL);
        status = exchange(redis, lock, until_us, request, size, &reply);
    }
    if (status == LOCK_OK && url->database != 0) {
        AUTO_REPLY reply = NULL;
        long long size = redisFormatCommand(&request, "SELECT %d", url->database);
        status = exchange(redis, lock, until_us, request, size, &reply);
    }
    return status;
}

/* Whatever the reply to its PING, by then the server has taken the handshake for done and has sent what comes with that:
 * it would else lie there unread, and look as if the server had closed the connection. */
static enum lock_status secure(struct redis *redis, struct lock *lock, int64_t until_us)
{
    const char *error;
    AUTO_REPLY reply = NULL;
    char *request = NULL;
    enum lock_status status = redis_tls_start(redis->context, redis->url.host, until_us, &error);
    if (status != LOCK_OK)
        return fail(redis, status, "no TLS: %s", error);
    long long size = redisFormatCommand(&request, "PING");
    status = exchange(redis, lock, until_us, request, size, &reply);
    return status == LOCK_REFUSED ? LOCK_OK : status;
}

static enum lock_status connect_now(struct redis *redis, struct lock *lock, int64_t until_us)
{
    const char *error;
    int fd = redis_socket(&redis->url, until_us, &error);
    if (fd < 0)
        return fail(redis, LOCK_AWAY, "cannot connect: %s", error);
    redis->context = redisConnectFd(fd);
    if (!redis->context) {
        close(fd);
        return fail(redis, LOCK_FAILED, "out of memory");
    }
    redis->context->flags &= ~REDIS_BLOCK;
    redis_reply_bound(redis->context, redis->bounds);
    enum lock_status status = redis->url.tls ? secure(redis, lock, until_us) : LOCK_OK;
    if (status == LOCK_OK)
        status = introduce(redis, lock, until_us);
    if (status != LOCK_OK)
        redis_drop(redis);
    return status;
}

/* Has the server closed the connection while nobody asked it for anything? */
static bool is_broken(const struct redis *redis)
{
    struct pollfd polled = {.fd = redis->context->fd, .events = POLLIN};
    return poll(&polled, 1, 0) != 0;
}

static enum lock_status make_ready(struct redis *redis, struct lock *lock, int64_t until_us)
{
    redis->sent = false;
    if (redis->url_error)
        return fail(redis, LOCK_REFUSED, "its URL cannot be used: %s", redis->url_error);
    if (redis->url.tls && redis_tls_lacks())
        return fail(redis, LOCK_REFUSED, "%s", redis_tls_lacks());
    if (redis->context)
        return LOCK_OK;
    if (monotonic_us() < redis->pause_ends_us && atomic_load(redis->made) == redis->made_before)
        return redis->refused ? LOCK_REFUSED : LOCK_AWAY; /* redis->error still says why */
    redis->made_before = atomic_load(redis->made);
    enum lock_status status = connect_now(redis, lock, until_us);
    redis->sent = false; /* what was sent so far is of no consequence */
    if (status == LOCK_OK) {
        atomic_fetch_add(redis->made, 1);
        redis->pause_ms = 0;
        return LOCK_OK;
    }
    redis->refused = status == LOCK_REFUSED;
    redis->pause_ends_us = monotonic_us() + redis->pause_ms * 1000;
    redis->pause_ms = redis->pause_ms ? redis->pause_ms * 2 : FIRST_PAUSE_MS;
    if (redis->pause_ms > LONGEST_PAUSE_MS)
        redis->pause_ms = LONGEST_PAUSE_MS;
    return status;
}

enum lock_status redis_ready(struct redis *redis, struct lock *lock, int64_t limit_ms,
                             redisContext **ret_context)
{
    enum lock_status status = make_ready(redis, lock, monotonic_us() + limit_ms * 1000);
    if (status == LOCK_OK)
        *ret_context = redis->context;
    return tell(redis, lock, status);
}

/* As exchange, on a new connection where the old one is lost. */
static enum lock_status request(struct redis *redis, struct lock *lock, int64_t until_us, char *bytes,
                                long long size, redisReply **ret_reply)
{
    if (redis->context && is_broken(redis))
        redis_drop(redis);
    enum lock_status status = make_ready(redis, lock, until_us);
    if (status == LOCK_OK)
        return exchange(redis, lock, until_us, bytes, size, ret_reply);
    if (size >= 0)
        redisFreeCommand(bytes);
    return status;
}

/* ---- what locks call --------------------------------------------------------------------------------------- */

enum lock_status redis_command(struct redis *redis, struct lock *lock, int64_t limit_ms,
                               redisReply **ret_reply, const char *format, ...)
{
    char *bytes = NULL;
    va_list arguments;
    va_start(arguments, format);
    long long size = redisvFormatCommand(&bytes, format, arguments);
    va_end(arguments);
    int64_t until_us = monotonic_us() + limit_ms * 1000;
    unsigned recorded = redis_record_command(redis, bytes, size);
    enum lock_status status = request(redis, lock, until_us, bytes, size, ret_reply);
    redis_record_reply(recorded, status, *ret_reply, redis->error);
    return tell(redis, lock, status);
}

static pthread_mutex_t names_mutex = PTHREAD_MUTEX_INITIALIZER; /* of every script's sha1 */

/* What the server calls SCRIPT: asked once in the life of this process, which also makes it known to that server. */
static enum lock_status name_script(struct redis *redis, struct lock *lock, int64_t until_us,
                                    struct redis_script *script, char ret_sha1[static 41])
{
    pthread_mutex_lock(&names_mutex);
    memcpy(ret_sha1, script->sha1, sizeof script->sha1);
    pthread_mutex_unlock(&names_mutex);
    if (*ret_sha1)
        return LOCK_OK;
    AUTO_REPLY reply = NULL;
    char *bytes = NULL;
    long long size = redisFormatCommand(&bytes, "SCRIPT LOAD %s", script->text);
    enum lock_status status = request(redis, lock, until_us, bytes, size, &reply);
    redis->sent = false; /* it was not the script itself that was asked for */
    if (status != LOCK_OK)
        return status;
    if (reply->type != REDIS_REPLY_STRING || reply->len != sizeof script->sha1 - 1) {
        redis_drop(redis);
        return fail(redis, LOCK_AWAY, "SCRIPT LOAD was not answered with a SHA-1");
    }
    pthread_mutex_lock(&names_mutex);
    memcpy(script->sha1, reply->str, sizeof script->sha1);
    pthread_mutex_unlock(&names_mutex);
    memcpy(ret_sha1, reply->str, sizeof script->sha1);
    return LOCK_OK;
}

enum lock_status redis_eval(struct redis *redis, struct lock *lock, int64_t limit_ms, redisReply **ret_reply,
                            struct redis_script *script, int key_count, const char *const *words,
                            int word_count)
{
    enum { HEAD = 3 };
    char sha1[41], number[12], *bytes = NULL;
    int64_t until_us = monotonic_us() + limit_ms * 1000;
    if (word_count > REDIS_WORDS_MAX)
        return tell(redis, lock, fail(redis, LOCK_FAILED, "too many words for a script"));
    const char *argv[HEAD + word_count];
    argv[0] = "EVALSHA";
    argv[1] = sha1;
    argv[2] = number;
    snprintf(number, sizeof number, "%d", key_count);
    for (int i = 0; i < word_count; i++)
        argv[HEAD + i] = words[i];
    unsigned recorded = redis_record_script(redis, argv[0], script->text, key_count, words, word_count);
    enum lock_status status = name_script(redis, lock, until_us, script, sha1);
    if (status != LOCK_OK) {
        redis_record_reply(recorded, status, NULL, redis->error);
        return tell(redis, lock, status);
    }
    long long size = redisFormatCommandArgv(&bytes, HEAD + word_count, argv, NULL);
    status = request(redis, lock, until_us, bytes, size, ret_reply);
    if (status == LOCK_REFUSED && strstr(redis->error, "NOSCRIPT")) { /* nothing was done: it has restarted */
        argv[0] = "EVAL";
        argv[1] = script->text;
        size = redisFormatCommandArgv(&bytes, HEAD + word_count, argv, NULL);
        status = request(redis, lock, until_us, bytes, size, ret_reply);
    }
    redis_record_reply(recorded, status, *ret_reply, redis->error);
    return tell(redis, lock, status);
}

int64_t redis_integer(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
}

bool redis_is(const redisReply *reply, const char *value)
{
    return reply && reply->type == REDIS_REPLY_STRING && reply->len == strlen(value) &&
           memcmp(reply->str, value, reply->len) == 0;
}

/* ---- the server of REDIS_URL --------------------------------------------------------------------------------- */

static enum lock_status ping(int64_t deadline_us, char *ret_error, size_t size)
{
    struct redis *redis = redis_new(lock_config.redis_url, strlen(lock_config.redis_url));
    if (!redis) {
        snprintf(ret_error, size, "out of memory");
        return LOCK_FAILED;
    }
    AUTO_REPLY reply = NULL;
    enum lock_status status = redis_command(redis, NULL, lock_command_ms(deadline_us), &reply, "PING");
    if (status != LOCK_OK)
        snprintf(ret_error, size, "%s", redis_error(redis));
    redis_free(redis);
    return status;
}

const struct lock_server redis_server = {
    .name = "redis", .setting = "REDIS_URL", .address = &lock_config.redis_url, .ping = ping};
