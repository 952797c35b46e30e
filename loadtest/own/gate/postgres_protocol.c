/* PostgreSQL's frontend/backend protocol, version 3, for the gate. TLS between the service and the gate is refused. */
#include "loadtest/own/gate/postgres_messages.h"
#include "loadtest/own/gate/wire_protocol.h"

enum {
    STARTUP_MAX = 16384,
    SSL_REQUEST = 80877103,
    GSS_REQUEST = 80877104,
    CANCEL_REQUEST = 80877102,
};

static const char SERIALIZABLE[] = "serializable", REPEATABLE[] = "repeatable";
static const char WRONG[] =
    "a message between the service and PostgreSQL has more than 8 MiB, or is not of protocol 3, so the gate closed "
    "the connection";

struct postgres_state {
    bool started; /* the startup message has passed */
    /* Of the unit that was read last. */
    bool awaited;     /* the server has not answered all of it */
    bool ends_ready;  /* ReadyForQuery is the end of the answer: it is no unit that Flush ends */
    unsigned results; /* else: answers to Bind and Execute that are still to come */
    bool copies;      /* the server reads rows for COPY, and ignores Sync */
    bool skips;       /* after an error the server ignores all up to Sync */
    struct prepared_statements prepared;
};

static const char WANTS_TLS[] =
    "the service asked the gate in front of PostgreSQL for TLS, which has none, and closed the connection. Let it connect to {postgres} with "
    "sslmode=prefer or sslmode=disable";

/* The startup messages have no type. */
static struct wire_unit next_startup(struct postgres_state *state, struct gate_connection *seen,
                                     const char *bytes, size_t count)
{
    if (count < 8)
        return (struct wire_unit){0};
    uint32_t length = message_number(bytes), code = message_number(bytes + 4);
    if (length < 8 || length > STARTUP_MAX)
        return (struct wire_unit){.length = MESSAGE_WRONG};
    if (count < length)
        return (struct wire_unit){0};
    seen->hint = code == SSL_REQUEST ? WANTS_TLS : NULL;
    seen->serializable |= unit_names(bytes, length, SERIALIZABLE);
    seen->repeatable |= unit_names(bytes, length, REPEATABLE);
    if (code == SSL_REQUEST || code == GSS_REQUEST)
        return (struct wire_unit){.length = length, .way = UNIT_ANSWERED, .answer = "N"};
    state->started = code != CANCEL_REQUEST;
    return (struct wire_unit){.length = length, .way = UNIT_PASSES};
}

static struct wire_unit next_unit(void *context, struct gate_connection *seen, const char *bytes,
                                  size_t count)
{
    struct postgres_state *state = context;
    if (!state->started)
        return next_startup(state, seen, bytes, count);
    if (seen->starts)
        return (struct wire_unit){.length = count, .way = UNIT_PASSES};
    /* The data of COPY, and the end of the connection, belong to a statement that has passed. */
    size_t length = message_length(bytes, count);
    if (length > 0 && length != MESSAGE_WRONG && message_is(bytes, state->copies ? "dcfpXS" : "dcfpX"))
        return (struct wire_unit){.length = length, .way = UNIT_PASSES};
    /* A client can send units without waiting for answers. Each gets its turn when the one before it has ended. */
    if (state->awaited)
        return (struct wire_unit){0};
    length = unit_length(bytes, count);
    if (length == MESSAGE_WRONG)
        seen->problem = WRONG;
    if (length > 0 && length != MESSAGE_WRONG) {
        state->ends_ready = unit_has(bytes, length, 'H') == 0;
        state->results = state->skips ? 0 : unit_has(bytes, length, 'B') + unit_has(bytes, length, 'E');
        state->awaited = state->ends_ready || state->results > 0;
        seen->whole = state->ends_ready;
        seen->serializable |= unit_names(bytes, length, SERIALIZABLE);
        seen->repeatable |= unit_names(bytes, length, REPEATABLE);
        seen->trivial = describe_unit(&state->prepared, bytes, length, seen->text, seen->statements);
        seen->begins = state->prepared.begins;
    }
    return (struct wire_unit){.length = length, .way = UNIT_HELD};
}

/* Has the running unit ended with this message of the server? */
static void note_end(struct postgres_state *state, struct gate_connection *seen, char type)
{
    state->copies = type == 'G' || (state->copies && type != 'Z' && type != 'E');
    state->skips = (type == 'E' && !state->ends_ready) || (state->skips && type != 'Z');
    if (state->skips)
        state->results = 0;
    else if (message_is(&type, "2CIs") && state->results > 0)
        state->results--;
    if (type == 'Z' || (!state->ends_ready && state->results == 0))
        seen->running = state->awaited = false;
}

static size_t next_answer(void *context, struct gate_connection *seen, const char *bytes, size_t count)
{
    struct postgres_state *state = context;
    size_t length = message_length(bytes, count);
    if (length == MESSAGE_WRONG)
        seen->problem = WRONG;
    if (length == 0 || length == MESSAGE_WRONG)
        return length;
    bool is_first = !*seen->answer; /* the tags of trivial statements are left out */
    if (*bytes == 'K' && length >= MESSAGE_HEADER + 4)
        seen->pid = (int32_t)message_number(bytes + MESSAGE_HEADER);
    else if (*bytes == 'D' && is_first)
        describe_row(bytes, length, seen->answer);
    else if (*bytes == 'C' && is_first)
        describe_tag(bytes, length, seen->answer);
    else if (*bytes == 'E') {
        seen->deadlock |= describe_error(bytes, length, seen->answer);
        describe_sqlstate(bytes, length, seen->sqlstate);
    }
    if (*bytes == 'Z' && length > MESSAGE_HEADER) {
        seen->starts = false;
        seen->transaction = bytes[MESSAGE_HEADER];
        if (!seen->trivial)
            seen->after = seen->transaction;
    }
    note_end(state, seen, *bytes);
    return length;
}

/* An ErrorResponse with severity, SQLSTATE and text, as the server itself sends it. */
static const char TOO_MANY[] = "E\0\0\0\x3cSFATAL\0VFATAL\0C53300\0Mtoo many connections to the gate\0";

static const char BEGIN[] = "Q\0\0\0\x0a"
                            "BEGIN",
                  COMMIT[] = "Q\0\0\0\x0b"
                             "COMMIT",
                  ROLLBACK[] = "Q\0\0\0\x0d"
                               "ROLLBACK";

const struct wire_protocol postgres_protocol = {
    .server = "PostgreSQL",
    .port = "5432",
    .socket = ".s.PGSQL.",
    .state_size = sizeof(struct postgres_state),
    .too_many = {TOO_MANY, sizeof TOO_MANY},
    .greets = true,
    .opens = {BEGIN, sizeof BEGIN},
    .commits = {COMMIT, sizeof COMMIT},
    .rolls_back = {ROLLBACK, sizeof ROLLBACK},
    .kept = "EZ",
    .next_unit = next_unit,
    .next_answer = next_answer,
};
