/* What the fakes of the engine's tests share: what each call is to answer, a record of all calls and steps, the rules that
 * were broken, and a clock that pauses move. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_RECORDER_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_RECORDER_H

#include "tests/unit/unit.h"

#include "service/engine/create_order.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FAKE_PRODUCT = 7,
    FAKE_QUANTITY = 2,
    FAKE_SEEN = 12,
    FAKE_EPOCH = 77,
    FAKE_TRIES = 3,
    FAULTS_MAX = 3,
    CALLS_MAX = 200
};

static const char FAKE_INSTANCE[] = "instance under test";
static const char FAKE_DB_ERROR[] = "the database's words";
static const char FAKE_LOCK_ERROR[] = "the lock's words";

struct fault {
    int at; /* the how-manieth call, from 0 */
    const char *result;
};

struct recorded_call {
    const char *name;
    char result[20]; /* "ok", or how it failed */
};

static struct fake_shop {
    /* what is to come */
    const char *script; /* what is left of it; NULL: every call succeeds but for the faults */
    struct fault faults[FAULTS_MAX];
    int fault_count;
    int64_t fence;      /* the next grant's */
    int64_t available;  /* with sold-out: what the take says is left */
    int64_t look_finds; /* what stock_available finds */
    long random_value;
    int64_t pause_longer_us; /* as on a busy machine */
    bool guarded;            /* the policy is one guarded statement */
    bool checked;            /* the policy asks before it writes whether the lock is still held */
    bool crowded;            /* too many units are still to be given back */
    bool other_constraint;   /* "unique" is not about the Idempotency-Key */

    /* what has come */
    struct recorded_call calls[CALLS_MAX];
    int call_count;
    char log[8192];
    char broken[1024]; /* rules that were broken */
    int64_t now_us, paused_us, longest_pause_us;
    int pauses;
    int64_t lock_step_value;

    /* how it stands */
    struct placing *placing;
    int64_t deadline_us, lock_deadline_us;
    bool tx_open, tx_failed;
    bool is_sent; /* COMMIT, whose result nobody has read yet */
    int tx_count;
    int reserved;         /* places for units that are still to be given back */
    bool given_back;      /* the units that were taken */
    bool giving;          /* whether they are is to be settled */
    bool owed;            /* they are left to be given back later */
    unsigned long grants; /* bit set of those that are held */
    int grant_count;
} fake;

/* ---- time and chance: the engine's pauses pass at once ---------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    *ret_now = (struct timespec){.tv_sec = fake.now_us / 1000000, .tv_nsec = fake.now_us % 1000000 * 1000};
    return 0;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
    int64_t us = (int64_t)pause->tv_sec * 1000000 + pause->tv_nsec / 1000;
    fake.now_us += us + fake.pause_longer_us;
    fake.paused_us += us;
    fake.longest_pause_us = us > fake.longest_pause_us ? us : fake.longest_pause_us;
    fake.pauses++;
    return 0;
}

long random(void)
{
    return fake.random_value;
}

/* ---- recording -------------------------------------------------------------------------------------- */

static void fake_append(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%s", used ? " " : "", text);
}

static void rule(bool kept, const char *text)
{
    if (kept)
        return;
    fake_append(fake.broken, sizeof fake.broken, text);
    fake_append(fake.broken, sizeof fake.broken, ";");
}

/* If the script goes on with NAME, moves past it; its result into RESULT. Off the script all calls succeed. */
static void follow_script(const char *name, char *result, size_t size)
{
    size_t length = strcspn(fake.script, " "), name_length = strcspn(fake.script, " =");
    if (name_length != strlen(name) || strncmp(fake.script, name, name_length) != 0) {
        fake.script = "";
        return;
    }
    if (length > name_length)
        snprintf(result, size, "%.*s", (int)(length - name_length - 1), fake.script + name_length + 1);
    fake.script += length + (fake.script[length] == ' ');
}

/* Records a call and returns how it is to end: "ok", or the name of a failure. */
static const char *fake_call(const char *name)
{
    static char spare[20];
    bool room = fake.call_count < CALLS_MAX;
    rule(room, "it goes on for ever");
    char *result = room ? fake.calls[fake.call_count].result : spare;
    snprintf(result, sizeof spare, "ok");
    if (fake.script)
        follow_script(name, result, sizeof spare);
    for (int i = 0; i < fake.fault_count; i++)
        if (fake.faults[i].at == fake.call_count)
            snprintf(result, sizeof spare, "%s", fake.faults[i].result);
    if (room)
        fake.calls[fake.call_count++].name = name;

    char word[60];
    bool ok = strcmp(result, "ok") == 0;
    snprintf(word, sizeof word, "%s%s%s", name, ok ? "" : "=", ok ? "" : result);
    fake_append(fake.log, sizeof fake.log, word);
    return result;
}

static void fake_on_step(struct observer *self, enum step step, int64_t value)
{
    char name[40], unused[20];
    snprintf(name, sizeof name, "%s", step_name(step));
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    fake_append(fake.log, sizeof fake.log, name);
    if (fake.script)
        follow_script(name, unused, sizeof unused);
    if (step == STEP_LOCK)
        fake.lock_step_value = value;
}

static struct observer fake_observer = {.on_step = fake_on_step};

/* ---- the names of results --------------------------------------------------------------------------- */

struct meaning {
    const char *name;
    int value;
};

static const struct meaning db_results[] = {
    {"ok", DB_OK},
    {"serialization", DB_SERIALIZATION},
    {"deadlock", DB_DEADLOCK},
    {"lock-timeout", DB_LOCK_TIMEOUT},
    {"timeout", DB_TIMEOUT},
    {"unique", DB_UNIQUE},
    {"check", DB_CHECK},
    {"foreign-key", DB_FOREIGN_KEY},
    {"out-of-range", DB_OUT_OF_RANGE},
    {"away", DB_AWAY},
    {"refused", DB_REFUSED},
    {"unknown", DB_UNKNOWN},
    {"again", DB_BEHIND_FAILURE},
    {"error", DB_ERROR},
    {NULL, -1},
};
static const struct meaning take_results[] = {
    {"ok", TAKE_OK},
    {"no-product", TAKE_NO_PRODUCT},
    {"wrong-kind", TAKE_WRONG_KIND},
    {"sold-out", TAKE_SOLD_OUT},
    {"busy", TAKE_BUSY},
    {"conflict", TAKE_CONFLICT},
    {"lock-lost", TAKE_LOCK_LOST},
    {NULL, TAKE_FAILED},
};
static const struct meaning key_results[] = {
    {"ok", KEY_NEW}, {"replay", KEY_REPLAY}, {"mismatch", KEY_MISMATCH}, {"in-progress", KEY_IN_PROGRESS},
    {NULL, -1},
};
static const struct meaning lock_results[] = {
    {"ok", LOCK_OK},
    {"busy", LOCK_TIMED_OUT},
    {"lost", LOCK_LOST},
    {"not-owner", LOCK_NOT_OWNER},
    {"away", LOCK_AWAY},
    {"refused", LOCK_REFUSED},
    {"unavailable", LOCK_UNAVAILABLE},
    {"failed", LOCK_FAILED},
    {NULL, -1},
};
static const struct meaning settle_results[] = {
    {"committed", COMMIT_COMMITTED},
    {"rolled-back", COMMIT_ROLLED_BACK},
    {"unknown", COMMIT_UNKNOWN},
    {"forgotten", COMMIT_FORGOTTEN},
    {NULL, -1},
};

static int meaning_of(const struct meaning *meanings, const char *name)
{
    while (meanings->name && strcmp(meanings->name, name) != 0)
        meanings++;
    return meanings->value;
}

static bool holds_outside(void)
{
    return fake.placing->strategy->span == SPAN_AROUND_TX ||
           fake.placing->strategy->span == SPAN_AROUND_TWICE;
}

#endif
