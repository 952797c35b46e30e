/* The connections that run a specification: one for each session, and one that prepares, cleans up, and asks which sessions wait. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_CONNECTIONS_H
#define OVERSELL_LOADTEST_SQLSPEC_CONNECTIONS_H

#include "loadtest/sqlspec/file/spec_file.h"
#include "loadtest/sqlspec/server/session.h"

/* A bit for each session, and one for a holder that is no session of ours. */
#define HOLDER_UNKNOWN (1u << 31)

struct connections {
    const struct spec *spec;
    const char *path; /* of the specification, for errors */
    struct session *control;
    struct session *sessions[SPEC_SESSIONS_MAX];
    int64_t next_ask_us; /* not before this can the server say something new about who waits */
    int64_t step_us;     /* a statement that is not blocked may take this long */
    /* What an execution reports, as it happens; the event is borrowed. NULL: nothing. */
    void (*on_event)(void *context, const json_t *event);
    void *context;
};

/* Connects all. URL: as libpq reads it. False, having said why on stderr. */
bool connections_open(const struct sql_driver *driver, const char *url, const struct spec *spec,
                      const char *path, struct connections *ret_connections);
void connections_close(struct connections *connections);

/* Which of the sessions wait for a lock, by the server: RET_HOLDERS[i] has bits of those that session i waits for; 0: it does
 * not wait, or the server cannot say yet. False, having said why. */
bool connections_waits(struct connections *connections, uint32_t ret_holders[SPEC_SESSIONS_MAX]);

/* What SESSION waits for and who holds it: "advisory lock 7, which is held by a". HOLDERS: of connections_waits. */
enum { LOCK_TEXT_SIZE = 400 };
void connections_describe_wait(struct connections *connections, size_t session, uint32_t holders,
                               char ret_text[LOCK_TEXT_SIZE]);

/* Waits until SESSION has ended what it runs: WHAT, of this line of the file. An error among the results is no failure. False: it took too long, it
 * waits for a lock that no step releases meanwhile, or the connection is lost; having said why, unless it was lost or an interrupt. */
bool connections_await(struct connections *connections, struct session *session, int line, const char *what);

/* Run the setup blocks of the file, and the one of a session. False, having said which failed. */
bool connections_set_up(struct connections *connections);
bool connections_set_up_session(struct connections *connections, size_t session);
/* Run the teardown block of a session, and the one of the file. A block that fails is only reported. Rolls the session back, and
 * releases the locks that would keep others from the tables. */
void connections_tear_down_session(struct connections *connections, size_t session);
void connections_tear_down(struct connections *connections);
/* Asks the invariants of the file. *ret_broken is the SQL of the first that is not true, NULL if all are; it belongs to the
 * specification. False, having said which one could not be asked. */
bool connections_check_invariants(struct connections *connections, const char **ret_broken);
/* After a failure: cancels what the session runs, rolls back and releases locks; the server ends a connection that is lost. */
void connections_end_session(struct connections *connections, size_t session);
/* Rolls the session back if it is in a transaction. False, having said why. */
bool connections_roll_back(struct connections *connections, size_t session);
/* Starts STEP on its session. False, having said why. */
bool connections_start(struct connections *connections, size_t step);
/* Rolls back, and makes one session or all as they were when they connected. False, having said why. */
bool connections_reset_session(struct connections *connections, size_t session);
bool connections_reset(struct connections *connections);

/* Creates and reports an event: its KIND and more members, as json_pack has them without the braces. */
void connections_report(struct connections *connections, const char *kind, json_t *members);

#endif
