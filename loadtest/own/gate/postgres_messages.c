/* Reads messages of PostgreSQL's frontend/backend protocol, version 3, as its manual describes them. Pure: no I/O. */
#include "loadtest/own/gate/postgres_messages.h"

#include "loadtest/own/gate/message_text.h"
#include "loadtest/sql/sql_signs.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

uint32_t message_number(const char *bytes)
{
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return ntohl(number);
}

static uint16_t number16(const char *bytes)
{
    uint16_t number;
    memcpy(&number, bytes, sizeof number);
    return ntohs(number);
}

size_t message_length(const char *bytes, size_t count)
{
    if (count < MESSAGE_HEADER)
        return 0;
    uint32_t length = message_number(bytes + 1);
    if (length < 4 || length >= MESSAGE_MAX)
        return MESSAGE_WRONG;
    return count < length + 1U ? 0 : length + 1U;
}

bool message_is(const char *bytes, const char *types)
{
    return *bytes && strchr(types, *bytes);
}

size_t unit_length(const char *bytes, size_t count)
{
    size_t offset = 0, length;
    while ((length = message_length(bytes + offset, count - offset)) > 0 && length != MESSAGE_WRONG) {
        offset += length;
        if (message_is(bytes + offset - length, "QFSHX"))
            return offset;
    }
    return length;
}

unsigned unit_has(const char *bytes, size_t count, char type)
{
    unsigned found = 0;
    for (size_t length; count > 0; bytes += length, count -= length) {
        length = message_length(bytes, count);
        found += *bytes == type;
    }
    return found;
}

bool unit_names(const char *bytes, size_t count, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = 0; i + length <= count; i++)
        if (strncasecmp(bytes + i, word, length) == 0)
            return true;
    return false;
}

/* ---- texts ---------------------------------------------------------------------------------------------------------- */

/* The text that ends before END and begins at *AT, which moves behind it. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at, *zero = memchr(text, '\0', (size_t)(end - text));
    *at = zero ? zero + 1 : end;
    return zero ? text : "";
}

/* ---- from the client -------------------------------------------------------------------------------------------------- */

/* A backslash can keep the quotation mark AT from ending its text: E'it\'s'. */
static bool has_escapes(const char *text, const char *at)
{
    return at > text && (at[-1] == 'E' || at[-1] == 'e') && (at - 1 == text || !sql_is_name(at[-2]));
}

/* Appends SQL without its comments. The text becomes one line, in which a comment to the end of a line would have no end, and what a
 * statement is shows in its first word. In a text between dollars, which is usually the body of a function, they are left out as well. */
static void append_sql(char *text, const char *sql)
{
    const char *from = sql, *at = sql;
    while (*at) {
        if (sql_is_comment(at)) {
            message_append(text, from, (size_t)(at - from));
            message_append(text, " ", 1);
            from = at = sql_skip_comment(at);
        } else if (*at == '\'' || *at == '"') {
            at = sql_skip_quoted(at, *at == '\'' && has_escapes(sql, at));
        } else {
            at++;
        }
    }
    message_append(text, from, (size_t)(at - from));
}

/* The place of the prepared statement NAME; PREPARED->COUNT: it is not known. */
static size_t find_statement(const struct prepared_statements *prepared, const char *name)
{
    size_t i = 0;
    while (i < prepared->count && strcmp(prepared->item[i].name, name) != 0)
        i++;
    return i;
}

static void remember_statement(struct prepared_statements *prepared, const char *at, const char *end)
{
    const char *name = take_text(&at, end), *text = take_text(&at, end);
    const size_t i = find_statement(prepared, name);
    if (i == PREPARED_MAX || strlen(name) >= sizeof prepared->item[i].name)
        return;
    prepared->count += i == prepared->count;
    snprintf(prepared->item[i].name, sizeof prepared->item[i].name, "%s", name);
    prepared->item[i].text[0] = prepared->item[i].whole[0] = '\0';
    append_sql(prepared->item[i].text, text);
    const size_t length = strlen(text);
    if (length < sizeof prepared->item[i].whole)
        memcpy(prepared->item[i].whole, text, length + 1);
}

static void append_value(char *text, const char *bytes, uint32_t length, bool binary)
{
    char number[32];
    int64_t value = 0;
    if (!binary) {
        message_append(text, bytes, length);
        return;
    }
    for (uint32_t i = 0; i < length && length <= 8; i++)
        value = (int64_t)((uint64_t)value << 8 | (uint8_t)bytes[i]);
    if (length == 2)
        value = (int16_t)value;
    if (length == 4)
        value = (int32_t)value;
    snprintf(number, sizeof number, length <= 8 ? "%lld" : "(binary)", (long long)value);
    message_append(text, number, strlen(number));
}

/* A Bind message: the text of its statement, and the parameters. */
static void describe_bind(const struct prepared_statements *prepared, const char *at, const char *end,
                          char *text)
{
    (void)take_text(&at, end);
    const size_t i = find_statement(prepared, take_text(&at, end));
    const char *statement = i < prepared->count ? prepared->item[i].text : "(a prepared statement)";
    message_append(text, statement, strlen(statement));
    if (end - at < 2)
        return;
    uint16_t formats = number16(at);
    const char *format = at + 2;
    at += 2 + 2 * (size_t)formats;
    if (end - at < 2)
        return;
    uint16_t count = number16(at);
    at += 2;
    for (uint16_t parameter = 0; parameter < count && end - at >= 4; parameter++) {
        uint32_t length = message_number(at);
        bool is_null = length == UINT32_MAX;
        at += 4;
        message_append(text, parameter ? ", " : " [", 2);
        if (is_null) {
            message_append(text, "NULL", 4);
            continue;
        }
        if (length > (size_t)(end - at))
            return;
        uint16_t which = formats == 1 ? 0 : parameter;
        append_value(text, at, length, which < formats && number16(format + 2 * (size_t)which) == 1);
        at += length;
    }
    if (count > 0)
        message_append(text, "]", 1);
}

static bool begins_with(const char *text, const char *word)
{
    return strncasecmp(text, word, strlen(word)) == 0;
}

/* "select nextval ('order_seq')", as object-relational mappers send it. They draw several numbers at once and keep them, so the statement
 * comes in some runs only. A number that nobody else gets has no effect on another request. */
static bool only_draws_number(const char *text)
{
    const char *call = strchr(text, '(');
    const char *behind = call ? strchr(call, ')') : NULL;
    return begins_with(text, "SELECT NEXTVAL") && behind && !strpbrk(call + 1, "(,") &&
           !strcasestr(behind, "FROM");
}

/* A text of statements that neither read nor write rows, nor take a lock. pg_advisory_unlock_all is what a pool sends when it gets a connection
 * back: no transaction is open there, so nobody can act between the statement before and the unlock in another way than before both. */
static bool is_trivial(const char *text)
{
    static const char *const WORDS[] = {"BEGIN",       "START TRANSACTION",
                                        "SET ",        "SHOW ",
                                        "DEALLOCATE ", "DISCARD ",
                                        "RESET ",      "CLOSE ",
                                        "UNLISTEN ",   "SELECT pg_advisory_unlock_all()"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (begins_with(text, WORDS[i])) {
            const char *end = strchr(text, ';');
            return !end || is_trivial(end + 1 + strspn(end + 1, " "));
        }
    return *text == '\0' || only_draws_number(text);
}

static bool begins_transaction(const char *text)
{
    return begins_with(text, "BEGIN") || begins_with(text, "START TRANSACTION");
}

/* Appends a statement of a unit. Drivers send BEGIN together with the first statement, so what is trivial has no part in the text. */
static void append_statement(char *text, const char *statement, bool *trivial)
{
    if (is_trivial(statement))
        return;
    if (!*trivial)
        message_append(text, "; ", 2);
    message_append(text, statement, strlen(statement));
    *trivial = false;
}

/* A message of the unit from BYTES to END binds the portal NAME. */
static bool binds_portal(const char *bytes, const char *end, const char *name)
{
    for (size_t length; bytes < end; bytes += length) {
        const char *at = bytes + MESSAGE_HEADER;
        length = message_length(bytes, (size_t)(end - bytes));
        if (*bytes == 'B' && strcmp(take_text(&at, bytes + length), name) == 0)
            return true;
    }
    return false;
}

/* Describes an Execute message whose Bind is not in the same unit: an earlier unit bound the portal, or fetched the first rows of a
 * cursor. */
static void describe_execute(const struct prepared_statements *prepared, const char *unit,
                             const char *message, size_t length, char *text)
{
    const char *at = message + MESSAGE_HEADER, *name = take_text(&at, message + length);
    if (!binds_portal(unit, message, name) && !(prepared->trivial_portal && *name == '\0'))
        message_append_text(text, "(continues the statement before)");
}

/* The statement that a message makes the server run; NULL: it is not known. "": none. */
static const char *whole_statement(const struct prepared_statements *prepared, const char *unit,
                                   const char *message, size_t length)
{
    const char *at = message + MESSAGE_HEADER, *end = message + length;
    const char *name = *message == 'B' || *message == 'E' || *message == 'Q' ? take_text(&at, end) : "";
    if (*message == 'Q')
        return name;
    if (*message == 'E')
        return binds_portal(unit, message, name) || (prepared->trivial_portal && *name == '\0') ? "" : NULL;
    if (*message != 'B')
        return *message == 'F' ? NULL : "";
    const size_t i = find_statement(prepared, take_text(&at, end));
    return i < prepared->count && *prepared->item[i].whole ? prepared->item[i].whole : NULL;
}

/* Statements to their ends, as far as all are known. */
struct whole_text {
    char *text;
    size_t used;
    bool unknown;
};

static void append_whole(struct whole_text *whole, const char *statement)
{
    whole->unknown |= !statement || whole->used + strlen(statement) + sizeof "; " > STATEMENTS_TEXT;
    if (!whole->unknown && *statement && !is_trivial(statement))
        whole->used += (size_t)snprintf(whole->text + whole->used, STATEMENTS_TEXT - whole->used, "%s%s",
                                        whole->used ? "; " : "", statement);
}

bool describe_unit(struct prepared_statements *prepared, const char *bytes, size_t count,
                   char ret_text[static MESSAGE_TEXT], char ret_statements[static STATEMENTS_TEXT])
{
    const char *unit = bytes;
    struct whole_text whole = {.text = ret_statements};
    bool trivial = true;
    ret_text[0] = ret_statements[0] = '\0';
    prepared->begins = false;
    for (size_t length; count > 0; bytes += length, count -= length) {
        length = message_length(bytes, count);
        const char *at = bytes + MESSAGE_HEADER, *end = bytes + length;
        char statement[MESSAGE_TEXT] = "";
        if (*bytes == 'Q')
            append_sql(statement, take_text(&at, end));
        else if (*bytes == 'P')
            remember_statement(prepared, at, end);
        else if (*bytes == 'B')
            describe_bind(prepared, at, end, statement);
        else if (*bytes == 'E')
            describe_execute(prepared, unit, bytes, length, statement);
        else if (*bytes == 'F')
            message_append_text(statement, "(a function call)");
        if (*bytes == 'B' && at < end && *at == '\0')
            prepared->trivial_portal = is_trivial(statement);
        prepared->begins |= begins_transaction(statement);
        append_statement(ret_text, statement, &trivial);
        append_whole(&whole, whole_statement(prepared, unit, bytes, length));
    }
    if (whole.unknown)
        ret_statements[0] = '\0';
    return trivial;
}

/* ---- from the server --------------------------------------------------------------------------------------------------- */

/* The format of a column is known to those only who have read the Bind or the RowDescription of its statement, which may be long ago.
 * The numbers that drivers ask for in binary have bytes that no text has. */
static bool looks_binary(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == 0 || ((unsigned char)bytes[i] < 32 && !strchr("\t\n\r", bytes[i])))
            return true;
    return false;
}

void describe_row(const char *bytes, size_t length, char ret_text[static MESSAGE_TEXT])
{
    const char *at = bytes + MESSAGE_HEADER, *end = bytes + length;
    uint16_t count = end - at >= 2 ? number16(at) : 0;
    at += count > 0 ? 2 : 0;
    for (uint16_t i = 0; i < count && end - at >= 4; i++) {
        uint32_t size = message_number(at);
        at += 4;
        if (i > 0)
            message_append(ret_text, ", ", 2);
        if (size == UINT32_MAX) {
            message_append(ret_text, "NULL", 4);
            continue;
        }
        if (size > (size_t)(end - at))
            return;
        append_value(ret_text, at, size, looks_binary(at, size));
        at += size;
    }
}

void describe_tag(const char *bytes, size_t length, char ret_text[static MESSAGE_TEXT])
{
    /* Of what may come in one unit with a statement that is shown. */
    static const char *const TAGS[] = {"BEGIN", "START TRANSACTION", "SET", "RESET", "DEALLOCATE"};
    const char *at = bytes + MESSAGE_HEADER;
    size_t size = strnlen(at, length - MESSAGE_HEADER);
    for (size_t i = 0; i < sizeof TAGS / sizeof *TAGS; i++)
        if (size == strlen(TAGS[i]) && memcmp(at, TAGS[i], size) == 0)
            return;
    message_append(ret_text, at, size);
}

bool describe_error(const char *bytes, size_t length, char ret_text[static MESSAGE_TEXT])
{
    const char *at = bytes + MESSAGE_HEADER, *end = bytes + length;
    bool deadlock = false;
    while (at < end && *at) {
        char field = *at++;
        const char *text = take_text(&at, end);
        deadlock |= field == 'C' && strcmp(text, "40P01") == 0;
        if (field == 'M') {
            ret_text[0] = '\0';
            message_append(ret_text, "error: ", 7);
            message_append(ret_text, text, strlen(text));
        }
    }
    return deadlock;
}

void describe_sqlstate(const char *bytes, size_t length, char ret_sqlstate[static 6])
{
    const char *at = bytes + MESSAGE_HEADER, *end = bytes + length;
    snprintf(ret_sqlstate, 6, "?"); /* a server that gives none */
    while (at < end && *at) {
        const bool is_code = *at++ == 'C';
        const char *text = take_text(&at, end);
        if (is_code && *text)
            snprintf(ret_sqlstate, 6, "%.5s", text);
    }
}
