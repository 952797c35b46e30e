/* Recognizes a request that repeats statements that have no effect. */
#include "loadtest/own/polls/poll_history.h"

#include "base/hash.h"
#include "base/text.h"
#include "loadtest/own/gate/wire_protocol.h"
#include "loadtest/sql/statement_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    TIMES_READ = 3, /* a statement was sent so often before it counts, if none was in vain */
    ID_LENGTH = 8,  /* of a token with a digit and a letter */
};

static bool is_part(unsigned char byte)
{
    return isalnum(byte) || (byte && strchr("-_:.+", byte));
}

/* A number of seconds, milliseconds or microseconds since 1970, or of microseconds since 2000. Identifiers have other lengths. */
static bool looks_like_epoch(const char *token, size_t length)
{
    size_t digits = 0;
    while (digits < length && isdigit((unsigned char)token[digits]))
        digits++;
    for (size_t i = digits; i < length; i++)
        if (token[i] != '.' && !isdigit((unsigned char)token[i]))
            return false;
    return digits == 10 || digits == 13 || digits == 15 || digits == 16;
}

/* "2026-11-28T00:52:42.1Z", "00:52:42.1+00", "1795827162000" */
static bool looks_like_time(const char *token, size_t length)
{
    size_t digits = 0, colons = 0, letters = 0;
    for (size_t i = 0; i < length; i++) {
        digits += isdigit((unsigned char)token[i]) != 0;
        colons += token[i] == ':';
        letters += isalpha((unsigned char)token[i]) != 0;
    }
    const bool is_date = length >= 10 && isdigit((unsigned char)token[0]) && token[4] == '-' &&
                         token[7] == '-';
    return (is_date && letters <= 2) || (colons >= 2 && letters == 0 && digits >= 4) ||
           looks_like_epoch(token, length);
}

static bool looks_like_id(const char *token, size_t length)
{
    bool digit = false, letter = false;
    for (size_t i = 0; i < length; i++) {
        digit |= isdigit((unsigned char)token[i]) != 0;
        letter |= isalpha((unsigned char)token[i]) != 0;
    }
    return length >= ID_LENGTH && digit && letter;
}

static uint64_t hash_of(const char *text, bool open, bool is_loose)
{
    uint64_t hash = hash_add_number(HASH_OF_NOTHING, open);
    while (*text) {
        size_t length = 0;
        while (is_part((unsigned char)text[length]))
            length++;
        bool left_out = length > 0 &&
                        (looks_like_time(text, length) || (is_loose && looks_like_id(text, length)));
        if (left_out)
            hash = hash_add(hash, "#", 1);
        else
            hash = hash_add(hash, text, length);
        text += length;
        if (*text && length == 0)
            hash = hash_add(hash, text++, 1);
    }
    return hash ? hash : 1;
}

/* Where the name of the table begins that the statement writes; NULL: it writes none. */
static const char *written_table(const char *text)
{
    static const char *const WRITES[] = {"INSERT INTO ", "UPDATE ONLY ", "UPDATE ", "DELETE FROM ONLY ",
                                         "DELETE FROM "};
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++)
        if (strncasecmp(text, WRITES[i], strlen(WRITES[i])) == 0)
            return text + strlen(WRITES[i]);
    return NULL;
}

/* Where the parameters begin that follow the text in brackets; its end if there are none. */
static const char *end_of_sql(const char *text)
{
    const char *end = text + strlen(text), *begin = NULL;
    for (const char *at = text; end > text && end[-1] == ']' && (at = strstr(at, " [")); at++)
        begin = at;
    return begin ? begin : end;
}

/* No table is named in a quoted text or a parameter. These can be different in each run, and the search must not be. */
static void note_words(struct poll_history *history, const char *text)
{
    char sql[MESSAGE_TEXT];
    struct sql_word word;
    snprintf(sql, sizeof sql, "%.*s", (int)(end_of_sql(text) - text), text);
    for (const char *at = sql; sql_word_next(&at, &word);) {
        const uint32_t bit = text_hash(word.text) % POLL_WORDS;
        if (word.kind == SQL_NAME)
            history->words[bit / 8] |= (uint8_t)(1U << bit % 8);
        else if (word.kind == SQL_UNKNOWN)
            memset(history->words, 0xff, sizeof history->words);
    }
}

uint32_t poll_table(const char *text)
{
    const char *table = written_table(text);
    struct sql_word word;
    if (!table || !sql_word_next(&table, &word) || word.kind != SQL_NAME)
        return 0;
    const uint32_t hash = text_hash(word.text);
    return hash ? hash : 1;
}

void poll_history_clear(struct poll_history *history)
{
    history->count = 0;
    history->is_refused = history->reads_more = false;
    memset(history->words, 0, sizeof history->words);
}

void poll_history_add(struct poll_history *history, const char *text, bool open, enum statement_effect effect)
{
    if (effect == EFFECT_CHANGES) {
        poll_history_clear(history);
        return;
    }
    history->is_refused |= effect == EFFECT_REFUSED;
    history->reads_more |= effect == EFFECT_VAIN &&
                           (strcasestr(text, "select") || strcasestr(text, " using ") ||
                            (strncasecmp(text, "UPDATE", 6) == 0 && strcasestr(text, " from ")));
    note_words(history, text);
    if (history->count == POLL_HISTORY)
        return;
    history->item[history->count].exact = effect == EFFECT_ENDS ? 0 : hash_of(text, open, false);
    history->item[history->count].loose = effect == EFFECT_ENDS ? 0 : hash_of(text, open, true);
    history->item[history->count++].in_vain = effect == EFFECT_VAIN || effect == EFFECT_REFUSED;
}

static bool ends_transaction(const char *text)
{
    return strncasecmp(text, "COMMIT", 6) == 0 || strncasecmp(text, "ROLLBACK", 8) == 0 ||
           strncasecmp(text, "END", 3) == 0;
}

uint64_t poll_history_repeats(const struct poll_history *history, const char *text, bool open)
{
    const uint64_t exact = hash_of(text, open, false), loose = hash_of(text, open, true);
    size_t times = 0, last = history->count;
    bool in_vain = false, is_exact = false;
    uint64_t all = 0;
    if (ends_transaction(text))
        return 0;
    for (size_t i = 0; i < history->count; i++)
        if (history->item[i].loose == loose) {
            times++;
            last = i;
            is_exact = history->item[i].exact == exact;
        }
    for (size_t i = last; i < history->count; i++) {
        in_vain |= history->item[i].in_vain;
        all += history->item[i].loose;
    }
    if (times == 0 || (!(in_vain && is_exact) && times < TIMES_READ))
        return 0;
    return all ? all : 1;
}

bool poll_history_has(const struct poll_history *history, const char *text, bool open)
{
    const uint64_t loose = hash_of(text, open, true);
    bool has = ends_transaction(text);
    for (size_t i = 0; i < history->count; i++)
        has |= history->item[i].loose == loose;
    return has;
}

bool poll_history_names(const struct poll_history *history, uint32_t table)
{
    return history->words[table % POLL_WORDS / 8] & 1U << table % POLL_WORDS % 8;
}
