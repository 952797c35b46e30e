/* Asking several Redis servers at once: write to all of them, then read what comes until the vote is decided.
 *
 * An answer that is not waited for any more is read, and thrown away, when it comes: each connection knows how many
 * answers it is owed. */
#include "lock/redis/client/nodes.h"
#include "base/clock.h"

#include "lock/redis/client/recording.h"
#include "lock/redis/client/reply.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A server that owes more answers than this is given a new connection; what was sent on the old one may be lost, and
 * then ends with its TTL. */
enum { OWED_MOST = 64 };

enum { RETRY_LEAST_MS = 10, RETRY_MOST_MS = 60 };

enum { CONNECT_MOST_MS = 100 }; /* to a server without which there is a majority */

struct node {
    struct redis *redis;
    redisContext *context; /* lent by REDIS; NULL: not connected */
    int owed;              /* answers that have not come yet */
    bool asked;            /* the last of them is to the present question */
};

struct redlock_nodes {
    int count;
    struct node all[LOCK_REDLOCK_MOST];
};

struct redlock_nodes *redlock_nodes_new(const char *urls)
{
    struct redlock_nodes *nodes = calloc(1, sizeof *nodes);
    const char *url;
    size_t size;
    bool ok = nodes;
    while (ok && lock_next_server(&urls, &url, &size)) {
        ok = nodes->count < LOCK_REDLOCK_MOST &&
             (nodes->all[nodes->count].redis = redis_new(url, size)) != NULL;
        nodes->count += ok;
    }
    if (ok && nodes->count > 0)
        return nodes;
    redlock_nodes_free(nodes);
    return NULL;
}

void redlock_nodes_free(struct redlock_nodes *nodes)
{
    if (!nodes)
        return;
    for (int i = 0; i < nodes->count; i++)
        redis_free(nodes->all[i].redis);
    free(nodes);
}

int redlock_count(const struct redlock_nodes *nodes)
{
    return nodes->count;
}

int redlock_quorum(const struct redlock_nodes *nodes)
{
    return nodes->count / 2 + 1;
}

int64_t redlock_pause_ms(void)
{
    char token[LOCK_TOKEN_SIZE] = "";
    if (!lock_random_token(token))
        return RETRY_MOST_MS;
    token[4] = '\0';
    return RETRY_LEAST_MS + (int64_t)strtoul(token, NULL, 16) % (RETRY_MOST_MS - RETRY_LEAST_MS + 1);
}

static void drop(struct node *node)
{
    redis_drop(node->redis);
    node->context = NULL;
    node->owed = 0;
    node->asked = false;
}

/* Closed while nothing was asked, as after a restart. */
static bool is_broken(const struct node *node)
{
    struct pollfd polled = {.fd = node->context->fd, .events = POLLIN};
    return node->owed == 0 && poll(&polled, 1, 0) != 0;
}

/* On a connection that is there. */
static void send_to(struct node *node, struct lock *lock, const char *bytes, size_t size, int64_t until_us)
{
    if (lock)
        lock->round_trips++;
    if (redis_send(node->redis, bytes, size, until_us)) {
        node->owed++;
        node->asked = true;
    } else {
        drop(node); /* a part of it may be on the way */
    }
}

static void count_refusal(struct redlock_votes *votes, const char *words)
{
    votes->refused++;
    snprintf(votes->refusal, sizeof votes->refusal, "%s", words);
}

static int count_asked(const struct redlock_nodes *nodes)
{
    int asked = 0;
    for (int i = 0; i < nodes->count; i++)
        asked += nodes->all[i].asked;
    return asked;
}

/* First to those who are connected, so that a server that is away keeps nobody from being asked; one that must be
 * connected may take half of the time that is left, less where a majority is asked already, and may refuse even that. */
static void send_to_all(struct redlock_nodes *nodes, struct lock *lock, const char *bytes, size_t size,
                        int64_t until_us, struct redlock_votes *votes)
{
    for (struct node *node = nodes->all; node < nodes->all + nodes->count; node++) {
        node->asked = false;
        if (node->context && (node->owed >= OWED_MOST || is_broken(node)))
            drop(node);
        else if (node->context)
            send_to(node, lock, bytes, size, until_us);
    }
    for (struct node *node = nodes->all; node < nodes->all + nodes->count; node++) {
        int64_t half_ms = (until_us - monotonic_us()) / 2000;
        if (count_asked(nodes) >= redlock_quorum(nodes) && half_ms > CONNECT_MOST_MS)
            half_ms = CONNECT_MOST_MS;
        if (node->context || half_ms <= 0)
            continue;
        enum lock_status status = redis_ready(node->redis, lock, half_ms, &node->context);
        if (status == LOCK_OK)
            send_to(node, lock, bytes, size, until_us);
        else if (status == LOCK_REFUSED)
            count_refusal(votes, redis_error(node->redis));
    }
}

static bool means_yes(const redisReply *reply, struct redlock_yes yes)
{
    if (reply->type != yes.type)
        return false;
    return yes.type == REDIS_REPLY_INTEGER
               ? reply->integer == 1
               : reply->len == strlen(yes.words) && memcmp(reply->str, yes.words, reply->len) == 0;
}

/* What is neither is no answer to our question: a status alone says nothing that could be a no. */
static bool means_no(const redisReply *reply, struct redlock_yes yes)
{
    return reply->type == REDIS_REPLY_NIL || (reply->type == yes.type && yes.type != REDIS_REPLY_STATUS);
}

/* False where it is neither a vote nor a refusal. */
static bool count_vote(struct redlock_votes *votes, const redisReply *reply, struct redlock_yes yes)
{
    if (reply->type == REDIS_REPLY_ERROR)
        count_refusal(votes, reply->str);
    else if (means_yes(reply, yes))
        votes->yes++;
    else if (means_no(reply, yes))
        votes->no++;
    else
        return false;
    return true;
}

/* Reads what has come from NODE; the answer to the present question is the last that it owes. */
static void read_from(struct node *node, struct redlock_votes *votes, struct redlock_yes yes)
{
    bool ok = redis_reply_read(node->context);
    while (ok) {
        AUTO_REPLY reply = NULL;
        ok = redis_reply_next(node->context, &reply);
        if (!reply)
            break;
        if (node->owed > 0 && --node->owed == 0 && node->asked) {
            ok = count_vote(votes, reply, yes);
            node->asked = false;
        }
    }
    if (!ok)
        drop(node);
}

/* Waits until UNTIL for those who were asked and have not answered. False when nothing has come, or nobody is left. */
static bool read_some(struct redlock_nodes *nodes, struct redlock_votes *votes, struct redlock_yes yes,
                      int64_t until_us)
{
    struct pollfd polled[LOCK_REDLOCK_MOST];
    int waiting = 0;
    int64_t left_us = until_us - monotonic_us();
    for (int i = 0; i < nodes->count; i++) {
        const struct node *node = &nodes->all[i];
        polled[i] = (struct pollfd){.fd = node->asked ? node->context->fd : -1, .events = POLLIN};
        waiting += node->asked;
    }
    int pause_ms = left_us > 0 ? (int)((left_us + 999) / 1000) : 0;
    if (waiting == 0)
        return false;
    int ready = poll(polled, (nfds_t)nodes->count, pause_ms);
    if (ready <= 0)
        return ready < 0 && errno == EINTR && pause_ms > 0;
    for (int i = 0; i < nodes->count; i++)
        if (polled[i].revents)
            read_from(&nodes->all[i], votes, yes);
    return true;
}

static unsigned record(const struct redlock_nodes *nodes, const char *const *words, int word_count,
                       const char *bytes, long long size)
{
    enum { SCRIPT = 1, KEY_COUNT = 2, FIRST_WORD = 3 };
    bool is_script = word_count > FIRST_WORD && strcmp(words[0], "EVAL") == 0;
    return is_script ? redis_record_script(nodes, words[0], words[SCRIPT], atoi(words[KEY_COUNT]),
                                           words + FIRST_WORD, word_count - FIRST_WORD)
                     : redis_record_command(nodes, bytes, size);
}

/* How many have answered by the time when the vote is decided depends on chance, so only the decision is recorded. */
static void record_votes(unsigned request, const struct redlock_nodes *nodes,
                         const struct redlock_votes *votes, struct redlock_yes yes)
{
    char answer[RECORDED_ANSWER_MAX];
    int count = nodes->count, quorum = redlock_quorum(nodes);
    const char *said_no = yes.type == REDIS_REPLY_INTEGER ? "0" : "nil or another value";
    if (votes->yes >= quorum)
        snprintf(answer, sizeof answer, "%s from a majority of %d servers", yes.words ? yes.words : "1",
                 count);
    else if (votes->no > count - quorum)
        snprintf(answer, sizeof answer, "%s from a majority of %d servers",
                 yes.type == REDIS_REPLY_STATUS ? "nil" : said_no, count);
    else
        snprintf(answer, sizeof answer,
                 "no majority of %d servers: %d agree, %d do not, %d refuse, %d are silent", count,
                 votes->yes, votes->no, votes->refused, votes->silent);
    record_answer(request, answer);
}

struct redlock_votes redlock_ask(struct redlock_nodes *nodes, struct lock *lock, int64_t limit_ms,
                                 struct redlock_yes yes, const char *const *words, int word_count)
{
    struct redlock_votes votes = {0};
    char *bytes = NULL;
    int quorum = redlock_quorum(nodes);
    int64_t until_us = monotonic_us() + limit_ms * 1000;
    long long size = redisFormatCommandArgv(&bytes, word_count, (const char **)words, NULL);
    unsigned recorded = record(nodes, words, word_count, bytes, size);
    if (size > 0) {
        send_to_all(nodes, lock, bytes, (size_t)size, until_us, &votes);
        redisFreeCommand(bytes);
    }
    while (votes.yes < quorum && votes.no <= nodes->count - quorum &&
           read_some(nodes, &votes, yes, until_us)) {
    }
    votes.silent = nodes->count - votes.yes - votes.no - votes.refused;
    if (recorded)
        record_votes(recorded, nodes, &votes, yes);
    return votes;
}

/* ---- the servers of REDLOCK_URLS as one -------------------------------------------------------------------- */

static enum lock_status ping(int64_t deadline_us, char *ret_error, size_t size)
{
    static const char *const words[] = {"PING"};
    struct redlock_nodes *nodes = redlock_nodes_new(lock_config.redlock_urls);
    if (!nodes) {
        snprintf(ret_error, size, "REDLOCK_URLS must name 1 to %d servers", LOCK_REDLOCK_MOST);
        return LOCK_REFUSED;
    }
    struct redlock_votes votes = redlock_ask(nodes, NULL, lock_command_ms(deadline_us),
                                             (struct redlock_yes){REDIS_REPLY_STATUS, "PONG"}, words, 1);
    bool ok = votes.yes >= redlock_quorum(nodes);
    bool refused = votes.refused > nodes->count - redlock_quorum(nodes);
    if (!ok)
        snprintf(ret_error, size, "of %d servers only %d answer, %d refuse%s%s", nodes->count,
                 votes.yes + votes.no, votes.refused, *votes.refusal ? ": " : "", votes.refusal);
    redlock_nodes_free(nodes);
    if (ok)
        return LOCK_OK;
    return refused ? LOCK_REFUSED : LOCK_AWAY;
}

const struct lock_server redlock_servers = {
    .name = "redlock", .setting = "REDLOCK_URLS", .address = &lock_config.redlock_urls, .ping = ping};
