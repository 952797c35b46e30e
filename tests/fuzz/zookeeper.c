/* A ZooKeeper that may not be one, as the requests and the recipes read its answers, which libzookeeper has taken apart.
 *
 * The first byte chooses the recipe, and whether it may wait; the rest is the answers, one after the other with the byte
 * 0xff between: a byte for the library's code, one for a node's number, then a path, or children with a line each. Behind
 * an odd number stands only what comes behind the path that was asked for; the child "=" is the node that was made last. */
#include "base/clock.h"
#include "tests/fuzz/fuzz.h"

#include "lock/registry.h"
#include "lock/zookeeper/client/session_impl.h"

enum { WAIT_US = 2000, NAMES_MOST = 100 };

static struct fuzz_input answers;
static char nobody; /* stands for the library's handle */
static char *made;  /* the path of the node that was made last */

struct answer {
    int code;
    struct Stat stat;
    char *text; /* to be freed */
};

static struct answer next_answer(void)
{
    static const int codes[] = {ZOK,
                                ZOK,
                                ZOK,
                                ZNONODE,
                                ZNODEEXISTS,
                                ZCONNECTIONLOSS,
                                ZSESSIONEXPIRED,
                                ZOPERATIONTIMEOUT,
                                ZMARSHALLINGERROR,
                                ZUNIMPLEMENTED,
                                ZNOAUTH,
                                ZRUNTIMEINCONSISTENCY};
    size_t size;
    const uint8_t *piece = fuzz_piece(&answers, 0xff, &size);
    struct fuzz_input input = {piece, size};
    struct answer answer = {.code = ZSYSTEMERROR};
    if (size > 0) /* there is one */
        answer.code = codes[fuzz_byte(&input) % (sizeof codes / sizeof codes[0])];
    answer.stat.czxid = fuzz_byte(&input);
    answer.text = fuzz_text(&input, 0);
    return answer;
}

/* The same in every run. */
bool lock_random_uuid(char ret_uuid[static LOCK_UUID_SIZE])
{
    snprintf(ret_uuid, LOCK_UUID_SIZE, "00000000-0000-4000-8000-%012d", 7);
    return true;
}

/* ---- in the place of the session --------------------------------------------------------------------------- */

int zookeeper_enter(const struct lock *lock, int64_t of_session, int64_t until_us,
                    struct zookeeper_visit *ret_visit)
{
    (void)lock;
    (void)of_session;
    (void)until_us;
    *ret_visit = (struct zookeeper_visit){.handle = (zhandle_t *)(void *)&nobody, .session = 42};
    return answers.left > 0 ? ZOK : ZCLOSING;
}

void zookeeper_exit(const struct zookeeper_visit *visit)
{
    (void)visit;
}

void zookeeper_io_doubt(int64_t since_us)
{
    (void)since_us;
}

int zookeeper_servers(void)
{
    return 1;
}

void zookeeper_abandon(int64_t session, const char *path)
{
    MUST(session == 42 && *path == '/');
}

void zookeeper_add_waiter(struct zookeeper_waiter *waiter)
{
    (void)waiter;
}

void zookeeper_remove_waiter(struct zookeeper_waiter *waiter)
{
    (void)waiter;
}

void zookeeper_tell_waiters(const struct zookeeper_visit *visit, const char *path)
{
    (void)visit;
    MUST(*path == '/');
}

enum lock_status zookeeper_wait(struct zookeeper_waiter *waiter, int64_t until_us)
{
    (void)until_us;
    if (fuzz_byte(&answers) % 4 == 0)
        return LOCK_TIMED_OUT;
    if (waiter->on_change)
        waiter->on_change(waiter, (zhandle_t *)(void *)&nobody);
    return LOCK_OK;
}

static const char *address = "configured";
const struct lock_server zookeeper_server = {.name = "zookeeper", .address = &address};

/* ---- in the place of the library: every answer comes at once ----------------------------------------------- */

int zoo_acreate2(zhandle_t *zh, const char *path, const char *value, int valuelen,
                 const struct ACL_vector *acl, int mode, string_stat_completion_t completion,
                 const void *data)
{
    (void)zh;
    (void)acl;
    (void)mode;
    MUST(*path == '/' && strlen(value) == (size_t)valuelen);
    struct answer answer = next_answer();
    free(made);
    MUST(asprintf(&made, "%s%s", answer.stat.czxid % 2 ? path : "", answer.text) >= 0);
    completion(answer.code, made, &answer.stat, data);
    free(answer.text);
    return ZOK;
}

/* The last part of the path of the node that was made last. */
static const char *made_name(void)
{
    const char *slash = made ? strrchr(made, '/') : NULL;
    return slash ? slash + 1 : "none";
}

int zoo_aget_children(zhandle_t *zh, const char *path, int watch, strings_completion_t completion,
                      const void *data)
{
    (void)zh;
    (void)path;
    (void)watch;
    struct answer answer = next_answer();
    char *names[NAMES_MOST];
    char *rest = *answer.text ? answer.text : NULL;
    struct String_vector children = {0, names};
    for (char *name; children.count < NAMES_MOST && (name = strsep(&rest, "\n"));)
        names[children.count++] = strcmp(name, "=") == 0 ? (char *)made_name() : name;
    completion(answer.code, &children, data);
    free(answer.text);
    return ZOK;
}

int zoo_async(zhandle_t *zh, const char *path, string_completion_t completion, const void *data)
{
    (void)zh;
    struct answer answer = next_answer();
    completion(answer.code, path, data);
    free(answer.text);
    return ZOK;
}

int zoo_adelete(zhandle_t *zh, const char *path, int version, void_completion_t completion, const void *data)
{
    (void)zh;
    (void)version;
    MUST(*path == '/');
    struct answer answer = next_answer();
    completion(answer.code, data);
    free(answer.text);
    return ZOK;
}

int zoo_aexists(zhandle_t *zh, const char *path, int watch, stat_completion_t completion, const void *data)
{
    (void)zh;
    (void)path;
    (void)watch;
    struct answer answer = next_answer();
    completion(answer.code, &answer.stat, data);
    free(answer.text);
    return ZOK;
}

int zoo_aget(zhandle_t *zh, const char *path, int watch, data_completion_t completion, const void *data)
{
    (void)zh;
    (void)watch;
    MUST(*path == '/');
    struct answer answer = next_answer();
    completion(answer.code, answer.text, (int)strlen(answer.text), &answer.stat, data);
    free(answer.text);
    return ZOK;
}

/* ---- who asks ---------------------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct lock_driver *const recipes[] = {&zookeeper_queue, &zookeeper_herd, &zookeeper_naive,
                                                        &curator};
    answers = (struct fuzz_input){data, size};
    free(made); /* of the input before, or what is found could not be found again */
    made = NULL;
    uint8_t who = fuzz_byte(&answers);
    const struct lock_driver *driver = recipes[who % 4];
    int64_t deadline_us = who & 4 ? monotonic_us() + WAIT_US : 0;
    struct lock *lock = NULL;
    struct lock_grant grant;
    MUST(lock_open(driver, &lock) == LOCK_OK);
    enum lock_status status = driver->acquire(lock, "product:1", deadline_us, &grant);
    MUST(status != LOCK_LOST && memchr(lock->error, '\0', sizeof lock->error));
    if (status == LOCK_OK) {
        MUST(strcmp(grant.key, "product:1") == 0 && memchr(grant.token, '\0', sizeof grant.token));
        (void)driver->still_held(lock, &grant);
        (void)driver->release(lock, &grant);
    }
    lock_close(lock);
    return 0;
}
