/* Reads messages of PostgreSQL's frontend/backend protocol, version 3, as its manual describes them. Pure: no I/O. Any thread. */
#ifndef OVERSELL_LOADTEST_OWN_GATE_POSTGRES_MESSAGES_H
#define OVERSELL_LOADTEST_OWN_GATE_POSTGRES_MESSAGES_H

#include "loadtest/own/gate/wire_protocol.h"

enum {
    MESSAGE_HEADER = 5, /* type and length */
    PREPARED_MAX = 64,  /* statements of a connection whose text is known */
};

/* The statements that a connection has prepared. All zero: none. */
struct prepared_statements {
    struct {
        char name[64], text[MESSAGE_TEXT], whole[STATEMENTS_TEXT]; /* WHOLE: "" if it is longer */
    } item[PREPARED_MAX];
    size_t count;
    bool trivial_portal; /* the unnamed portal is bound to BEGIN or the like */
    bool begins;         /* the unit that was described last begins a transaction */
};

/* The number in four bytes. */
uint32_t message_number(const char *bytes);
/* The length, with its type, of the message that begins at BYTES, of which COUNT are there. 0: it is not complete. MESSAGE_WRONG: it is
 * no message. */
size_t message_length(const char *bytes, size_t count);
/* The message's type is one of TYPES. */
bool message_is(const char *bytes, const char *types);
/* The same for a unit of the client: the messages up to Query, FunctionCall, Sync, Flush or Terminate. */
size_t unit_length(const char *bytes, size_t count);
/* How many messages of TYPE a complete unit has. */
unsigned unit_has(const char *bytes, size_t count, char type);

/* A complete unit, or a startup message, has WORD in some text; letters may be capital. */
bool unit_names(const char *bytes, size_t count, const char *word);

/* Writes the statements of a complete unit with their parameters as one line, without BEGIN, SET and the like and without comments, and
 * notes what the unit prepares and binds. A statement counts from Bind on, when PostgreSQL takes its snapshot. True: none is left, so
 * the unit neither reads nor writes rows, nor takes or releases a lock. RET_STATEMENTS: that member of struct gate_connection. */
bool describe_unit(struct prepared_statements *prepared, const char *bytes, size_t count,
                   char ret_text[static MESSAGE_TEXT], char ret_statements[static STATEMENTS_TEXT]);

/* Each appends what a complete message of the server says, on one line: the values of a DataRow, the tag of a CommandComplete if it is
 * not that of a trivial statement. */
void describe_row(const char *bytes, size_t length, char ret_text[static MESSAGE_TEXT]);
void describe_tag(const char *bytes, size_t length, char ret_text[static MESSAGE_TEXT]);
/* An ErrorResponse replaces the text. True: PostgreSQL has ended the transaction because of a deadlock. */
bool describe_error(const char *bytes, size_t length, char ret_text[static MESSAGE_TEXT]);
/* The SQLSTATE of an ErrorResponse, of which five characters count. */
void describe_sqlstate(const char *bytes, size_t length, char ret_sqlstate[static 6]);

#endif
