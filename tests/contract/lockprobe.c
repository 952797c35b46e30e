/* Plays contenders for locks, one thread each, as the tests tell it on standard input.
 *
 * A line is a command; every event is answered with one line of JSON, its times in microseconds of the monotonic
 * clock. The servers' addresses come from the environment, as the service's do.
 *
 *   open A LOCK                                     a contender of this name, with its own handle
 *   acquire A KEY [wait=MS|forever] [lease=MS] [ends]   ends: the lease ends by itself, even where it is renewed
 *   release A | held A | renew A                    about the grant that A got last and has not released
 *   release-again A                                 the last grant, though it is spent
 *   raise-fence A KEY FENCE
 *   count A KEY FILE N [wait=MS] [lease=MS]         N times: acquire, add one to the number in FILE, release
 *   cycle A KEY N [wait=MS] [lease=MS]              N times: acquire, release; both count releases that say "away"
 *   hold-at A STEP                                  stop A once, when it next reports STEP, until …
 *   go A                                            … this
 *   stats A                                         round trips, wake-ups, the last error
 *   ping LOCK MS                                    does its server answer?
 *   quit                                            close all and end; the end of input ends it like a crash
 *
 * `lockprobe --list` prints all locks with their properties. */
#include "base/clock.h"
#include "lock/registry.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 12, DEPTH_MAX = 8, CONTENDERS_MAX = 64, COMMANDS_MAX = 64 };

struct contender {
    struct observer observer; /* first: on_step gets its address */
    char name[32];
    pthread_t thread;
    struct lock *lock;
    struct lock_grant grants[DEPTH_MAX]; /* those that it holds, and one that is spent above them */
    int depth;
    bool waiting_told; /* of this acquisition */

    pthread_mutex_t mutex; /* what follows is shared with the thread that reads the commands */
    pthread_cond_t changed;
    char *commands[COMMANDS_MAX];
    int command_count;
    int hold_at; /* a step, or -1 */
    bool held;
};

static struct contender *contenders[CONTENDERS_MAX];
static int contender_count;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

/* ---- what is said ---------------------------------------------------------------------------------------- */

/* Prints EVENT, which is the caller's no more, as one line. */
static void say(json_t *event)
{
    pthread_mutex_lock(&output);
    if (!event || json_dumpf(event, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) != 0) {
        fprintf(stderr, "lockprobe: an event cannot be printed\n");
        _exit(1);
    }
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&output);
    json_decref(event);
}

static void complain(const char *who, const char *what)
{
    say(json_pack("{s:s, s:s, s:s}", "who", who, "did", "misunderstood", "error", what));
}

/* An answer to a command that asks the lock for something. */
static json_t *answer(const struct contender *c, const char *did, enum lock_status status, int64_t began_us)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:s}", "who", c->name, "did", did, "status",
                     lock_status_name(status), "began_us", (json_int_t)began_us, "ended_us",
                     (json_int_t)monotonic_us(), "error", status == LOCK_OK ? "" : c->lock->error);
}

/* ---- words ----------------------------------------------------------------------------------------------- */

static int split(char *line, char *words[WORDS_MAX])
{
    int count = 0;
    for (char *rest = line, *word; count < WORDS_MAX && (word = strsep(&rest, " \n"));)
        if (*word)
            words[count++] = word;
    return count;
}

/* The value of NAME=VALUE among the words; NULL where it is not there. */
static const char *option(char *const words[], int count, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < count; i++)
        if (strncmp(words[i], name, length) == 0 && (words[i][length] == '=' || !words[i][length]))
            return words[i] + length + (words[i][length] == '=');
    return NULL;
}

static int64_t number(const char *text, int64_t otherwise)
{
    return text ? strtoll(text, NULL, 10) : otherwise;
}

static int64_t deadline_of(char *const words[], int count)
{
    const char *wait = option(words, count, "wait");
    if (wait && strcmp(wait, "forever") == 0)
        return INT64_MAX;
    return monotonic_us() + number(wait, 0) * 1000;
}

/* ---- what a contender does ------------------------------------------------------------------------------- */

static void on_step(struct observer *self, enum step step, int64_t value)
{
    struct contender *c = (struct contender *)self;
    (void)value;
    if (step == STEP_WAIT && !c->waiting_told) {
        c->waiting_told = true;
        say(json_pack("{s:s, s:s, s:I}", "who", c->name, "did", "wait", "at_us", (json_int_t)monotonic_us()));
    }
    pthread_mutex_lock(&c->mutex);
    if (c->hold_at == (int)step) {
        c->hold_at = -1;
        c->held = true;
        say(json_pack("{s:s, s:s, s:s, s:I}", "who", c->name, "did", "step", "step", step_name(step), "at_us",
                      (json_int_t)monotonic_us()));
        while (c->held)
            pthread_cond_wait(&c->changed, &c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
}

static void acquire(struct contender *c, char *words[], int count)
{
    if (c->depth == DEPTH_MAX - 1) {
        complain(c->name, "holds too many grants");
        return;
    }
    c->lock->lease_ms = number(option(words, count, "lease"), 10000);
    c->lock->lease_ends = option(words, count, "ends") != NULL;
    c->waiting_told = false;
    struct lock_grant *grant = &c->grants[c->depth];
    int64_t began_us = monotonic_us();
    enum lock_status status = lock_acquire(c->lock, words[2], deadline_of(words, count), grant);
    json_t *event = answer(c, "acquire", status, began_us);
    if (status == LOCK_OK) {
        c->depth++;
        json_t *more = json_pack("{s:s, s:s, s:I, s:I}", "key", grant->key, "token", grant->token, "fence",
                                 (json_int_t)grant->fence, "lease_end_us", (json_int_t)grant->lease_end_us);
        json_object_update(event, more);
        json_decref(more);
    }
    say(event);
}

static void release(struct contender *c, char *words[], int count)
{
    (void)count;
    bool again = strcmp(words[0], "release-again") == 0;
    if (!again && c->depth == 0) {
        complain(c->name, "holds nothing");
        return;
    }
    if (!again)
        c->depth--;
    int64_t began_us = monotonic_us();
    enum lock_status status = lock_release(c->lock, &c->grants[c->depth]);
    say(answer(c, words[0], status, began_us));
}

static void held_or_renew(struct contender *c, char *words[], int count)
{
    (void)count;
    bool renew = strcmp(words[0], "renew") == 0;
    if (c->depth == 0 || (renew && !c->lock->driver->renew)) {
        complain(c->name, renew ? "has nothing to renew" : "holds nothing");
        return;
    }
    const struct lock_grant *grant = &c->grants[c->depth - 1];
    int64_t began_us = monotonic_us();
    enum lock_status status = renew ? c->lock->driver->renew(c->lock, grant)
                                    : c->lock->driver->still_held(c->lock, grant);
    say(answer(c, words[0], status, began_us));
}

static void raise_fence(struct contender *c, char *words[], int count)
{
    if (count < 4 || !c->lock->driver->raise_fence) {
        complain(c->name, "cannot raise a fence");
        return;
    }
    int64_t began_us = monotonic_us();
    enum lock_status status = c->lock->driver->raise_fence(c->lock, words[2], number(words[3], 0));
    say(answer(c, "raise-fence", status, began_us));
}

/* Reads the number in the file and writes the next, with nothing but the lock to protect it. */
static bool add_one(int file)
{
    char text[24] = "";
    if (pread(file, text, sizeof text - 1, 0) < 0)
        return false;
    usleep(500);
    int length = snprintf(text, sizeof text, "%ld\n", strtol(text, NULL, 10) + 1);
    return pwrite(file, text, (size_t)length, 0) == length;
}

/* What rounds have come to. */
struct rounds {
    int64_t done;
    int64_t away;      /* releases that too few servers answered in time */
    json_t *intervals; /* when it was held, where something is counted */
};

/* One: acquire, add one to the number in FILE if that is not -1, release. */
static enum lock_status go_round(struct contender *c, char *words[], int count, int file,
                                 struct rounds *rounds)
{
    struct lock_grant grant;
    enum lock_status status = lock_acquire(c->lock, words[2], deadline_of(words, count), &grant);
    if (status != LOCK_OK)
        return status;
    int64_t began_us = monotonic_us();
    bool ok = file < 0 || add_one(file);
    if (file >= 0)
        json_array_append_new(rounds->intervals,
                              json_pack("[I, I]", (json_int_t)began_us, (json_int_t)monotonic_us()));
    status = lock_release(c->lock, &grant);
    rounds->done++;
    rounds->away += status == LOCK_AWAY;
    if (!ok)
        return LOCK_FAILED;
    return status == LOCK_AWAY ? LOCK_OK : status;
}

static void count_or_cycle(struct contender *c, char *words[], int count)
{
    bool counts = strcmp(words[0], "count") == 0;
    if (count < (counts ? 5 : 4)) {
        complain(c->name, "count KEY FILE N, or cycle KEY N");
        return;
    }
    int file = counts ? open(words[3], O_RDWR | O_CLOEXEC) : -1;
    int64_t began_us = monotonic_us(), wanted = number(words[counts ? 4 : 3], 0);
    struct rounds rounds = {.intervals = json_array()};
    c->lock->lease_ms = number(option(words, count, "lease"), 10000);
    c->lock->lease_ends = option(words, count, "ends") != NULL;
    enum lock_status status = counts && file < 0 ? LOCK_FAILED : LOCK_OK;
    while (status == LOCK_OK && rounds.done < wanted)
        status = go_round(c, words, count, file, &rounds);
    if (file >= 0)
        close(file);
    json_t *event = answer(c, words[0], status, began_us);
    json_object_set_new(event, "done", json_integer(rounds.done));
    json_object_set_new(event, "away", json_integer(rounds.away));
    json_object_set_new(event, "intervals", rounds.intervals);
    say(event);
}

static void stats(struct contender *c, char *words[], int count)
{
    (void)words;
    (void)count;
    say(json_pack("{s:s, s:s, s:I, s:I, s:s}", "who", c->name, "did", "stats", "round_trips",
                  (json_int_t)c->lock->round_trips, "wake_ups", (json_int_t)c->lock->wake_ups, "error",
                  c->lock->error));
}

static const struct {
    const char *name;
    int words; /* at least */
    void (*run)(struct contender *c, char *words[], int count);
} commands[] = {
    {"acquire", 3, acquire},      {"release", 2, release},      {"release-again", 2, release},
    {"held", 2, held_or_renew},   {"renew", 2, held_or_renew},  {"raise-fence", 4, raise_fence},
    {"count", 5, count_or_cycle}, {"cycle", 4, count_or_cycle}, {"stats", 2, stats},
};

/* ---- threads --------------------------------------------------------------------------------------------- */

/* The next command, which the caller frees. */
static char *next_command(struct contender *c)
{
    pthread_mutex_lock(&c->mutex);
    while (c->command_count == 0)
        pthread_cond_wait(&c->changed, &c->mutex);
    char *line = c->commands[0];
    c->command_count--;
    memmove(c->commands, c->commands + 1, (size_t)c->command_count * sizeof c->commands[0]);
    pthread_mutex_unlock(&c->mutex);
    return line;
}

static void *contend(void *arg)
{
    struct contender *c = arg;
    while (true) {
        char *words[WORDS_MAX], *line = next_command(c);
        int count = split(line, words);
        bool quits = strcmp(words[0], "quit") == 0;
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
            if (strcmp(words[0], commands[i].name) == 0)
                commands[i].run(c, words, count);
        free(line);
        if (quits)
            return NULL;
    }
}

static void tell(struct contender *c, const char *line)
{
    pthread_mutex_lock(&c->mutex);
    char *copy = strdup(line);
    if (copy && c->command_count < COMMANDS_MAX)
        c->commands[c->command_count++] = copy;
    else
        free(copy);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

static struct contender *find(const char *name)
{
    for (int i = 0; i < contender_count; i++)
        if (strcmp(contenders[i]->name, name) == 0)
            return contenders[i];
    return NULL;
}

static const struct lock_driver *find_lock(const char *name)
{
    for (const struct lock_driver *const *driver = all_locks; *driver; driver++)
        if (strcmp((*driver)->name, name) == 0)
            return *driver;
    return NULL;
}

static void open_contender(char *words[], int count)
{
    const struct lock_driver *driver = count == 3 ? find_lock(words[2]) : NULL;
    struct contender *c = driver && contender_count < CONTENDERS_MAX ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        complain(count > 1 ? words[1] : "", "open NAME LOCK: no such lock, or too many contenders");
        return;
    }
    snprintf(c->name, sizeof c->name, "%s", words[1]);
    c->observer.on_step = on_step;
    c->hold_at = -1;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->changed, NULL);
    enum lock_status status = lock_open(driver, &c->lock);
    if (status == LOCK_OK) {
        c->lock->observer = &c->observer;
        contenders[contender_count++] = c;
        pthread_create(&c->thread, NULL, contend, c);
    }
    say(json_pack("{s:s, s:s, s:s}", "who", words[1], "did", "open", "status", lock_status_name(status)));
    if (status != LOCK_OK)
        free(c);
}

static void hold_at(struct contender *c, const char *name)
{
    int step = 0;
    while (step < STEP_COUNT && strcmp(step_name((enum step)step), name) != 0)
        step++;
    if (step == STEP_COUNT) {
        complain(c->name, "no such step");
        return;
    }
    pthread_mutex_lock(&c->mutex);
    c->hold_at = step;
    pthread_mutex_unlock(&c->mutex);
}

static void go_on(struct contender *c)
{
    pthread_mutex_lock(&c->mutex);
    c->hold_at = -1;
    c->held = false;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

static void ping(const char *name, int64_t limit_ms)
{
    const struct lock_driver *driver = find_lock(name);
    if (!driver || !driver->server) {
        complain(name, "no such lock, or none with a server");
        return;
    }
    char error[200] = "";
    int64_t began_us = monotonic_us();
    enum lock_status status = lock_ping(driver->server, began_us + limit_ms * 1000, error, sizeof error);
    say(json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "who", name, "did", "ping", "status",
                  lock_status_name(status), "error", error, "began_us", (json_int_t)began_us, "ended_us",
                  (json_int_t)monotonic_us()));
}

static int quit(void)
{
    for (int i = 0; i < contender_count; i++)
        tell(contenders[i], "quit");
    for (int i = 0; i < contender_count; i++) {
        struct contender *c = contenders[i];
        pthread_join(c->thread, NULL);
        lock_close(c->lock);
        pthread_mutex_destroy(&c->mutex);
        pthread_cond_destroy(&c->changed);
        free(c);
    }
    return 0;
}

static int obey(void)
{
    char line[1024], copy[1024];
    while (fgets(line, sizeof line, stdin)) {
        char *words[WORDS_MAX];
        snprintf(copy, sizeof copy, "%s", line);
        int count = split(copy, words);
        if (count == 0)
            continue;
        struct contender *c = count > 1 ? find(words[1]) : NULL;
        bool known = false;
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
            known = known || (strcmp(words[0], commands[i].name) == 0 && count >= commands[i].words);
        if (strcmp(words[0], "quit") == 0)
            return quit();
        if (strcmp(words[0], "open") == 0)
            open_contender(words, count);
        else if (strcmp(words[0], "ping") == 0 && count == 3)
            ping(words[1], number(words[2], 0));
        else if (c && strcmp(words[0], "hold-at") == 0 && count == 3)
            hold_at(c, words[2]);
        else if (c && strcmp(words[0], "go") == 0)
            go_on(c);
        else if (c && known)
            tell(c, line);
        else
            complain(count > 1 ? words[1] : "", line);
    }
    _exit(0); /* whoever told us what to do is gone: leave everything as it is */
}

/* ---- start ----------------------------------------------------------------------------------------------- */

static json_t *properties_of(const struct lock_driver *driver)
{
    const struct lock_properties *p = &driver->properties;
    return json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}",
                     "name", driver->name, "server", driver->server ? driver->server->name : "", "setting",
                     driver->server ? driver->server->setting : "", "reentrant", p->reentrant, "blocking",
                     p->blocking, "fair", p->fair, "leased", p->carrier == CARRIER_LEASE, "renewed",
                     p->renewed, "fenced", p->fenced, "survives_crash", p->survives_crash,
                     "survives_minority", p->survives_minority, "pause", (p->perils & PERIL_PAUSE) != 0,
                     "disconnect", (p->perils & PERIL_DISCONNECT) != 0, "clock",
                     (p->perils & PERIL_CLOCK) != 0, "restart", (p->perils & PERIL_RESTART) != 0, "can_renew",
                     driver->renew != NULL, "can_raise_fence", driver->raise_fence != NULL);
}

static int list(void)
{
    for (const struct lock_driver *const *driver = all_locks; *driver; driver++)
        say(properties_of(*driver));
    return 0;
}

int main(int argc, char *argv[])
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    char error[200];
    if (!lock_configure_from_environment(error, sizeof error)) {
        fprintf(stderr, "lockprobe: %s\n", error);
        return 2;
    }
    srandom((unsigned)monotonic_us()); /* the jitter of those that poll */
    return obey();
}
