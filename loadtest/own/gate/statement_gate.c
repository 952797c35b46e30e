/* A proxy between a user's service and its servers that holds each statement until it is released. */
#include "loadtest/own/gate/statement_gate.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/own/gate/front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_SIZE = 16384,
    BUFFER_MAX = MESSAGE_MAX + 2 * READ_SIZE, /* of a message, and of what is held back or not sent yet */
};

/* READY bytes may go to the other side; what follows has not been read yet, or is held. */
struct buffer {
    char *bytes;
    size_t length, size, ready;
};

/* Of a statement outside a transaction whose COMMIT is held as well: the gate puts it into a transaction. */
enum split {
    SPLIT_NONE,
    SPLIT_OPENS, /* BEGIN runs; the statement waits */
    SPLIT_RUNS,  /* the statement runs; its answers wait for the COMMIT, as the server would let them wait */
    SPLIT_HELD,  /* at the COMMIT */
    SPLIT_CLOSES /* COMMIT or ROLLBACK runs */
};

struct link {
    struct gate_connection seen;
    enum split split;
    size_t scanned; /* bytes of OUT behind READY that have been read and must wait */
    const struct wire_protocol *protocol;
    void *state; /* the protocol's */
    int client, server;
    bool client_gone, server_gone;  /* it has closed its side */
    bool released, refused, closed; /* what the explorer wants */
    size_t unit;                    /* bytes of the held unit */
    struct buffer in, out;
};

struct gate {
    struct front fronts[GATE_SERVERS_MAX];
    size_t front_count;
    int wake;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool hold, ends;
    const char *problem, *hint;
    struct link *links[GATE_CONNECTIONS];
    struct gate_connection none;
    /* the last one in each place; its PID is 0 if there was none */
    struct gate_connection closed[GATE_CONNECTIONS];
};

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

/* It can take more. */
static bool has_room(const struct buffer *buffer)
{
    return buffer->length + READ_SIZE <= BUFFER_MAX;
}

static bool grow(struct buffer *buffer, size_t more)
{
    size_t size = buffer->size ? buffer->size : (size_t)2 * READ_SIZE;
    while (size - buffer->length < more)
        size *= 2;
    if (size == buffer->size)
        return true;
    char *bytes = realloc(buffer->bytes, size);
    if (!bytes)
        return false;
    buffer->bytes = bytes;
    buffer->size = size;
    return true;
}

/* False: the other side has closed the connection. */
static bool receive(int from, struct buffer *buffer)
{
    if (!grow(buffer, READ_SIZE))
        return false;
    ssize_t count = recv(from, buffer->bytes + buffer->length, READ_SIZE, MSG_DONTWAIT);
    if (count > 0)
        buffer->length += (size_t)count;
    return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Sends what may go, as much as the other side takes now. False: the connection is lost. */
static bool send_now(int to, struct buffer *buffer)
{
    while (buffer->ready > 0) {
        ssize_t count = send(to, buffer->bytes, buffer->ready, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 && errno == EAGAIN;
        buffer->length -= (size_t)count;
        buffer->ready -= (size_t)count;
        memmove(buffer->bytes, buffer->bytes + count, buffer->length);
    }
    return true;
}

/* The LENGTH bytes that begin SKIP bytes after those that may go are left out. */
static void drop(struct buffer *buffer, size_t skip, size_t length)
{
    char *begin = buffer->bytes + buffer->ready + skip;
    buffer->length -= length;
    memmove(begin, begin + length, buffer->length - buffer->ready - skip);
}

/* LENGTH more bytes may go, after what already may. */
static bool insert(struct buffer *buffer, const char *bytes, size_t length)
{
    if (!grow(buffer, length))
        return false;
    char *begin = buffer->bytes + buffer->ready;
    memmove(begin + length, begin, buffer->length - buffer->ready);
    memcpy(begin, bytes, length);
    buffer->length += length;
    buffer->ready += length;
    return true;
}

/* ---- from the service -------------------------------------------------------------------------------------------------- */

static bool say(struct link *link, struct wire_bytes what)
{
    link->seen.running = true;
    return insert(&link->in, what.bytes, what.length);
}

static const char LETS_THROUGH[] =
    "the gate has let a held statement through although nobody released it, so no schedule of this run counts. This is a mistake of loadtest: "
    "please report it";

/* False: out of memory, or a mistake of ours, which would make every schedule look clean: a statement that is to wait does not. */
static bool release(struct gate *gate, struct link *link)
{
    if (gate->hold && !link->released) {
        gate->problem = LETS_THROUGH;
        gate_changed(gate);
        return false;
    }
    link->seen.held = link->released = false;
    link->seen.running = true;
    if (link->split == SPLIT_HELD) {
        link->split = SPLIT_CLOSES;
        link->seen.commits = false;
        return say(link, link->protocol->commits);
    }
    if (link->seen.splits) {
        link->split = SPLIT_OPENS;
        return say(link, link->protocol->opens);
    }
    link->in.ready += link->unit;
    return true;
}

/* False: the connection must be closed. */
static bool pass_from_client(struct gate *gate, struct link *link)
{
    for (;;) {
        if (link->refused) {
            link->refused = false;
            drop(&link->in, 0, link->unit);
            const char *answer = link->protocol->refuse(link->state);
            if (!insert(&link->out, answer, strlen(answer)))
                return false;
        }
        if (link->seen.held || link->released) {
            if (!link->released && gate->hold)
                return true;
            if (!release(gate, link))
                return false;
        }
        if (link->split != SPLIT_NONE)
            return true;
        size_t left = link->in.length - link->in.ready;
        if (left == 0)
            return true;
        const struct wire_unit unit = link->protocol->next_unit(link->state, &link->seen,
                                                                link->in.bytes + link->in.ready, left);
        gate->problem = link->seen.problem ? link->seen.problem : gate->problem;
        if (unit.length == 0 || unit.length == MESSAGE_WRONG)
            return unit.length == 0;
        switch (unit.way) {
        case UNIT_PASSES: link->in.ready += unit.length; break;
        case UNIT_ANSWERED:
            drop(&link->in, 0, unit.length);
            if (!insert(&link->out, unit.answer, strlen(unit.answer)))
                return false;
            break;
        case UNIT_HELD:
            link->unit = unit.length;
            link->seen.held = true;
            link->seen.splits = false;
            link->seen.claim = GATE_NO_OWNER;
            gate_changed(gate);
            break;
        }
    }
}

/* ---- from the server ------------------------------------------------------------------------------------------------ */

/* The statement that splits has ended: its COMMIT is held. After an error there is nothing to commit. False: out of memory. */
static bool end_statement(struct gate *gate, struct link *link)
{
    link->split = link->seen.transaction == 'T' ? SPLIT_HELD : SPLIT_CLOSES;
    link->seen.splits = false;
    if (link->split == SPLIT_CLOSES)
        return say(link, link->protocol->rolls_back);
    link->seen.held = link->seen.commits = true;
    link->seen.claim = link->seen.owner;
    snprintf(link->seen.text, sizeof link->seen.text, "COMMIT (of the statement before)");
    gate_changed(gate);
    return true;
}

/* The server's next message, of LENGTH bytes, belongs to a statement that splits. False: out of memory. */
static bool pass_split(struct gate *gate, struct link *link, size_t length)
{
    struct buffer *out = &link->out;
    bool ended = !link->seen.running, closes = link->split == SPLIT_CLOSES,
         kept = strchr(link->protocol->kept, out->bytes[out->ready + link->scanned]) != NULL;
    if (link->split == SPLIT_OPENS ? true : closes ? !kept : ended && link->seen.transaction != 'I')
        drop(out, link->scanned, length);
    else
        link->scanned += length;
    if (!ended)
        return true;
    if (link->split == SPLIT_OPENS) {
        link->split = SPLIT_RUNS;
        link->seen.running = true;
        link->in.ready += link->unit;
        return true;
    }
    if (!closes && link->seen.transaction != 'I')
        return end_statement(gate, link);
    link->split = SPLIT_NONE;
    out->ready += link->scanned;
    link->scanned = 0;
    return true;
}

static bool pass_from_server(struct gate *gate, struct link *link)
{
    struct buffer *out = &link->out;
    while (out->length > out->ready + link->scanned && !link->seen.keep_answers) {
        size_t begin = out->ready + link->scanned,
               length = link->protocol->next_answer(link->state, &link->seen, out->bytes + begin,
                                                    out->length - begin);
        gate->problem = link->seen.problem ? link->seen.problem : gate->problem;
        if (length == MESSAGE_WRONG)
            return false;
        if (length == 0)
            break;
        if (link->split == SPLIT_NONE)
            out->ready += length;
        else if (!pass_split(gate, link, length))
            return false;
    }
    link->seen.has_answers = out->length > out->ready + link->scanned;
    gate_changed(gate);
    return true;
}

/* ---- connections --------------------------------------------------------------------------------------------------------- */

static void free_link(struct link *link)
{
    if (link) {
        free(link->state);
        free(link->in.bytes);
        free(link->out.bytes);
    }
    free(link);
}

static void close_link(struct gate *gate, size_t i)
{
    gate->hint = gate->links[i]->seen.hint ? gate->links[i]->seen.hint : gate->hint;
    gate->closed[i] = gate->links[i]->seen;
    close(gate->links[i]->client);
    close(gate->links[i]->server);
    free_link(gate->links[i]);
    gate->links[i] = NULL;
    gate_changed(gate);
}

static struct link *new_link(const struct front *front)
{
    struct link *link = calloc(1, sizeof *link);
    if (link)
        link->state = calloc(1, front->protocol->state_size);
    if (link && link->state)
        return link;
    free_link(link);
    return NULL;
}

static void accept_link(struct gate *gate, size_t which)
{
    struct front *front = &gate->fronts[which];
    int client = front_accept(front);
    size_t i = 0;
    if (client < 0)
        return;
    while (i < GATE_CONNECTIONS && gate->links[i])
        i++;
    if (i == GATE_CONNECTIONS) {
        gate->problem =
            "the service opens more connections than the gate has room for; make its pool smaller than 64";
        front_turn_away(front, client);
        return;
    }
    struct link *link = new_link(front);
    int server = link ? front_connect(front) : -1;
    if (server < 0) {
        gate->problem = link ? front->problem : gate->problem;
        close(client);
        free_link(link);
        return;
    }
    struct sockaddr_in local = {0};
    socklen_t size = sizeof local;
    (void)getsockname(server, (struct sockaddr *)&local, &size);
    link->protocol = front->protocol;
    link->client = client;
    link->server = server;
    link->seen = (struct gate_connection){.used = true,
                                          .server = which,
                                          .port = ntohs(local.sin_port),
                                          .starts = front->protocol->greets,
                                          .transaction = 'I',
                                          .owner = GATE_NO_OWNER,
                                          .host = GATE_NO_OWNER,
                                          .claim = GATE_NO_OWNER};
    gate->links[i] = link;
}

/* Each side takes what it can now; the rest waits in its buffer, so that a slow reader stops no other connection. Answers come before units, so
 * that a unit that has been released does not end with the answer of the one before it. False: the connection must be closed. */
static bool serve(struct gate *gate, struct link *link, const struct pollfd polled[static 2])
{
    const short came = POLLIN | POLLERR | POLLHUP;
    if ((polled[0].revents & came) && has_room(&link->in))
        link->client_gone |= !receive(link->client, &link->in);
    if ((polled[1].revents & came) && has_room(&link->out))
        link->server_gone |= !receive(link->server, &link->out);
    if (link->closed || !pass_from_server(gate, link) || !pass_from_client(gate, link))
        return false;
    link->seen.queued = link->in.length - link->in.ready -
                        (link->seen.held && !link->seen.commits ? link->unit : 0);
    return send_now(link->server, &link->in) && send_now(link->client, &link->out) &&
           (!link->client_gone || link->in.ready > 0) &&
           (!link->server_gone || link->out.ready > 0 || link->seen.keep_answers);
}

static struct pollfd poll_for(int fd, bool is_gone, const struct buffer *from, const struct buffer *to)
{
    const short events = (short)((!is_gone && has_room(from) ? POLLIN : 0) | (to->ready > 0 ? POLLOUT : 0));
    return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static void *run_gate(void *context)
{
    struct gate *gate = context;
    struct pollfd polled[1 + GATE_SERVERS_MAX + 2 * GATE_CONNECTIONS];
    size_t link_of[1 + GATE_SERVERS_MAX + 2 * GATE_CONNECTIONS];
    gate_lock(gate);
    while (!gate->ends) {
        size_t count = 0;
        polled[count++] = (struct pollfd){.fd = gate->wake, .events = POLLIN};
        for (size_t i = 0; i < gate->front_count; i++)
            polled[count++] = (struct pollfd){.fd = gate->fronts[i].listener, .events = POLLIN};
        for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
            if (!gate->links[i])
                continue;
            link_of[count] = i;
            const struct link *link = gate->links[i];
            polled[count++] = poll_for(link->client, link->client_gone, &link->in, &link->out);
            polled[count++] = poll_for(link->server, link->server_gone, &link->out, &link->in);
        }
        gate_unlock(gate);
        int ready = poll(polled, count, -1);
        gate_lock(gate);
        if (ready < 0)
            continue;
        uint64_t woken;
        if (polled[0].revents && read(gate->wake, &woken, sizeof woken) < 0)
            continue;
        for (size_t p = 1 + gate->front_count; p < count; p += 2)
            if (!serve(gate, gate->links[link_of[p]], &polled[p]))
                close_link(gate, link_of[p]);
        for (size_t i = 0; i < gate->front_count; i++)
            if (polled[1 + i].revents)
                accept_link(gate, i);
    }
    gate_unlock(gate);
    return NULL;
}

/* ---- for the explorer ------------------------------------------------------------------------------------------------------ */

static void wake(struct gate *gate)
{
    const uint64_t one = 1;
    if (write(gate->wake, &one, sizeof one) < 0)
        complain("the gate cannot be woken: %s", strerror(errno));
}

static bool open_fronts(struct gate *gate, const struct gate_server *servers, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++)
        ok = front_open(&gate->fronts[gate->front_count++], &servers[i]);
    return ok;
}

static bool start_thread(struct gate *gate)
{
    gate->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (gate->wake >= 0 && (errno = pthread_create(&gate->thread, NULL, run_gate, gate)) == 0)
        return true;
    complain("the gate cannot be opened: %s", strerror(errno));
    return false;
}

/* The thread does not run. */
static void free_gate(struct gate *gate)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate->links[i])
            close_link(gate, i);
    if (gate->wake >= 0)
        close(gate->wake);
    for (size_t i = 0; i < gate->front_count; i++)
        front_close(&gate->fronts[i]);
    pthread_cond_destroy(&gate->condition);
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

struct gate *gate_open(const struct gate_server *servers, size_t count)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate) {
        complain("out of memory");
        return NULL;
    }
    gate->wake = -1;
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->condition, NULL);
    if (open_fronts(gate, servers, count) && start_thread(gate))
        return gate;
    free_gate(gate);
    return NULL;
}

void gate_close(struct gate *gate)
{
    if (!gate)
        return;
    gate_lock(gate);
    gate->ends = true;
    wake(gate);
    gate_unlock(gate);
    pthread_join(gate->thread, NULL);
    free_gate(gate);
}

unsigned gate_port(const struct gate *gate, size_t i)
{
    return gate->fronts[i].port;
}

void gate_lock(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
}

void gate_unlock(struct gate *gate)
{
    pthread_mutex_unlock(&gate->mutex);
}

void gate_wait(struct gate *gate, int64_t until_us)
{
    (void)wait_until(&gate->condition, &gate->mutex, until_us);
}

void gate_changed(struct gate *gate)
{
    pthread_cond_broadcast(&gate->condition);
}

const struct gate_connection *gate_connection_of(struct gate *gate, size_t i, int32_t pid)
{
    const struct gate_connection *now = gate_connection(gate, i);
    if (now->used && now->pid == pid)
        return now;
    return gate->closed[i].pid == pid ? &gate->closed[i] : NULL;
}

struct gate_connection *gate_connection(struct gate *gate, size_t i)
{
    return gate->links[i] ? &gate->links[i]->seen : &gate->none;
}

void gate_hold(struct gate *gate, bool hold)
{
    gate->hold = hold;
    for (size_t i = 0; i < GATE_CONNECTIONS && !hold; i++)
        gate_connection(gate, i)->keep_answers = false;
    wake(gate);
}

void gate_release(struct gate *gate, size_t i)
{
    if (gate->links[i] && gate->links[i]->seen.held) {
        gate->links[i]->released = true;
        gate->links[i]->seen.held = false;
        gate->links[i]->seen.running = true;
        wake(gate);
    }
}

void gate_release_answers(struct gate *gate, size_t i)
{
    gate_connection(gate, i)->keep_answers = false;
    wake(gate);
}

void gate_refuse(struct gate *gate, size_t i)
{
    struct link *link = gate->links[i];
    if (!link || !link->seen.held)
        return;
    if (!link->protocol->refuse || link->seen.remembers) {
        gate_close_connection(gate, i);
        return;
    }
    link->refused = true;
    link->seen.held = false;
    wake(gate);
}

/* The thread closes the sockets, since it may wait for them. */
void gate_close_connection(struct gate *gate, size_t i)
{
    struct link *link = gate->links[i];
    if (!link)
        return;
    link->closed = true;
    link->seen.used = link->seen.held = link->seen.running = link->seen.starts = false;
    wake(gate);
}

const char *gate_problem(const struct gate *gate)
{
    return gate->problem;
}

const char *gate_hint(struct gate *gate)
{
    gate_lock(gate);
    const char *hint = gate->hint;
    gate_unlock(gate);
    return hint;
}

void gate_cut(struct gate *gate)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate->links[i])
            gate->links[i]->closed = true;
    wake(gate);
}
