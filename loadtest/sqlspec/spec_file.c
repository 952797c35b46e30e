/* Reads files in the format of PostgreSQL's isolation tester: words, blocks in braces, and the rules between them. */
#include "loadtest/sqlspec/spec_file.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 1 << 20 };

/* ---- words --------------------------------------------------------------------------------------------- */

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,   /* a name, or a word of the format */
    TOKEN_QUOTED, /* a name in quotation marks, never a word of the format */
    TOKEN_BLOCK,  /* SQL in braces */
    TOKEN_NUMBER,
    TOKEN_SIGN, /* ( ) , or * */
    TOKEN_BAD,
};

struct token {
    enum token_kind kind;
    int line;
    const char *text; /* in the file; of a name or a block, without what encloses it */
    size_t length;
};

struct reader {
    const char *path, *at;
    int line;
    struct token token; /* the current one */
    char *error;
    bool failed;
};

/* Keeps the first error only. Returns false. */
__attribute__((format(printf, 3, 4))) static bool wrong(struct reader *reader, int line, const char *format,
                                                        ...)
{
    char what[SPEC_ERROR_SIZE];
    va_list arguments;
    if (reader->failed)
        return false;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (line > 0)
        (void)snprintf(reader->error, SPEC_ERROR_SIZE, "%.150s:%d: %.230s", reader->path, line, what);
    else
        (void)snprintf(reader->error, SPEC_ERROR_SIZE, "%.150s: %.230s", reader->path, what);
    reader->failed = true;
    return false;
}

static bool begins_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Spaces at the ends of a block are no part of its SQL; line ends are, as in PostgreSQL's isolation tester. */
static bool is_blank(char c)
{
    return is_space(c) && c != '\n' && c != '\v';
}

static void skip_spaces(struct reader *reader)
{
    for (; *reader->at; reader->at++) {
        if (*reader->at == '#')
            while (reader->at[1] && reader->at[1] != '\n')
                reader->at++;
        else if (*reader->at == '\n')
            reader->line++;
        else if (!is_space(*reader->at))
            return;
    }
}

static struct token bad(struct reader *reader, const char *what)
{
    (void)wrong(reader, reader->line, "%s", what);
    return (struct token){.kind = TOKEN_BAD, .line = reader->line, .text = "", .length = 0};
}

/* AT is on the first quotation mark; two of them inside stand for one. */
static struct token read_quoted(struct reader *reader)
{
    struct token token = {.kind = TOKEN_QUOTED, .line = reader->line, .text = ++reader->at};
    for (; *reader->at && *reader->at != '\n'; reader->at++)
        if (*reader->at == '"') {
            if (reader->at[1] != '"') {
                token.length = (size_t)(reader->at++ - token.text);
                return token;
            }
            reader->at++;
        }
    return bad(reader, "a name in quotation marks does not end on its line. Add the second \"");
}

/* AT is on the brace. As in PostgreSQL's isolation tester, the next closing brace ends the block, wherever it stands. */
static struct token read_block(struct reader *reader)
{
    const char *end = strchr(++reader->at, '}');
    struct token token = {.kind = TOKEN_BLOCK, .line = reader->line, .text = reader->at};
    if (!end)
        return bad(reader, "the block that begins here does not end. Add }");
    for (; reader->at < end; reader->at++)
        reader->line += *reader->at == '\n';
    reader->at++;
    while (token.text < end && is_blank(*token.text))
        token.text++;
    while (end > token.text && is_blank(end[-1]))
        end--;
    token.length = (size_t)(end - token.text);
    return token;
}

static struct token read_token(struct reader *reader)
{
    skip_spaces(reader);
    struct token token = {.kind = TOKEN_END, .line = reader->line, .text = reader->at};
    if (!*reader->at)
        return token;
    if (*reader->at == '"')
        return read_quoted(reader);
    if (*reader->at == '{')
        return read_block(reader);
    if (strchr("(),*", *reader->at)) {
        reader->at++;
        token.kind = TOKEN_SIGN;
    } else if (is_digit(*reader->at)) {
        while (is_digit(*reader->at))
            reader->at++;
        token.kind = TOKEN_NUMBER;
    } else if (begins_name(*reader->at)) {
        while (begins_name(*reader->at) || is_digit(*reader->at) || *reader->at == '$')
            reader->at++;
        token.kind = TOKEN_WORD;
    } else {
        char what[80];
        (void)snprintf(what, sizeof what,
                       "'%c' is not valid here. Names with other characters need quotation marks",
                       *reader->at);
        return bad(reader, what);
    }
    token.length = (size_t)(reader->at - token.text);
    return token;
}

static void advance(struct reader *reader)
{
    reader->token = read_token(reader);
}

static bool is_word(const struct reader *reader, const char *word)
{
    const struct token *token = &reader->token;
    return token->kind == TOKEN_WORD && token->length == strlen(word) &&
           memcmp(token->text, word, token->length) == 0;
}

static bool is_sign(const struct reader *reader, char sign)
{
    return reader->token.kind == TOKEN_SIGN && *reader->token.text == sign;
}

static bool is_keyword(const struct reader *reader)
{
    static const char *const WORDS[] = {"setup",       "teardown",  "session", "step",
                                        "permutation", "invariant", "notices"};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (is_word(reader, WORDS[i]))
            return true;
    return false;
}

/* Complains that WANTED should stand where the current token is. */
static bool expected(struct reader *reader, const char *wanted)
{
    const struct token *token = &reader->token;
    if (token->kind == TOKEN_END)
        return wrong(reader, token->line, "the file ends where %s should follow", wanted);
    int length = token->length > 40 ? 40 : (int)token->length;
    return wrong(reader, token->line, "expected %s instead of %s%.*s%s", wanted,
                 token->kind == TOKEN_BLOCK ? "{ " : "'", length, token->text,
                 token->kind == TOKEN_BLOCK ? " }" : "'");
}

/* A copy of the current token, and advances. A quoted name loses the doubling of its quotation marks. NULL: no memory. */
static char *take(struct reader *reader)
{
    const struct token *token = &reader->token;
    char *copy = malloc(token->length + 1);
    size_t used = 0;
    for (size_t i = 0; copy && i < token->length; i++) {
        copy[used++] = token->text[i];
        i += token->kind == TOKEN_QUOTED && token->text[i] == '"';
    }
    if (copy)
        copy[used] = 0;
    else
        (void)wrong(reader, 0, "out of memory");
    advance(reader);
    return copy;
}

/* The name after a word such as "step"; WANTED is for the error. */
static char *take_name(struct reader *reader, const char *wanted)
{
    if (reader->token.kind != TOKEN_QUOTED && (reader->token.kind != TOKEN_WORD || is_keyword(reader))) {
        (void)expected(reader, wanted);
        return NULL;
    }
    return take(reader);
}

/* The word that is the current token, and its block. */
static bool take_block(struct reader *reader, struct sql_block *ret_block)
{
    advance(reader);
    if (reader->token.kind != TOKEN_BLOCK)
        return expected(reader, "SQL in braces");
    ret_block->line = reader->token.line;
    ret_block->sql = take(reader);
    return ret_block->sql != NULL;
}

/* ---- what is found ------------------------------------------------------------------------------------- */

/* SIZE_MAX: there is none. */
static size_t find_step(const struct spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->step_count; i++)
        if (strcmp(spec->steps[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* The step that the current token names, and advances. */
static size_t take_step(struct reader *reader, const struct spec *spec)
{
    int line = reader->token.line;
    char *name = take_name(reader, "the name of a step");
    size_t found = name ? find_step(spec, name) : SIZE_MAX;
    if (name && found == SIZE_MAX)
        (void)wrong(reader, line, "no session has a step '%.60s'", name);
    free(name);
    return found;
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

static bool parse_step(struct reader *reader, struct spec *spec)
{
    struct spec_session *session = &spec->sessions[spec->session_count - 1];
    int line = reader->token.line;
    if (spec->step_count == SPEC_STEPS_MAX)
        return wrong(reader, line, "there are more than %d steps", SPEC_STEPS_MAX);
    advance(reader);
    char *name = take_name(reader, "the name of the step");
    if (name && find_step(spec, name) != SIZE_MAX)
        (void)wrong(reader, line, "a step '%.60s' exists already. Names of steps are unique in the file",
                    name);
    if (!name || reader->failed) {
        free(name);
        return false;
    }
    struct spec_step *step = &spec->steps[spec->step_count];
    *step = (struct spec_step){
        .name = name, .session = spec->session_count - 1, .number = session->step_count};
    session->steps[session->step_count++] = spec->step_count++;
    if (reader->token.kind != TOKEN_BLOCK)
        return expected(reader, "SQL in braces");
    step->block.line = reader->token.line;
    step->block.sql = take(reader);
    return step->block.sql != NULL;
}

static bool parse_session(struct reader *reader, struct spec *spec)
{
    int line = reader->token.line;
    if (spec->session_count == SPEC_SESSIONS_MAX)
        return wrong(reader, line, "there are more than %d sessions", SPEC_SESSIONS_MAX);
    advance(reader);
    struct spec_session *session = &spec->sessions[spec->session_count];
    session->name = take_name(reader, "the name of the session");
    if (!session->name)
        return false;
    for (size_t i = 0; i < spec->session_count; i++)
        if (strcmp(spec->sessions[i].name, session->name) == 0) {
            (void)wrong(reader, line, "a session '%.60s' exists already", session->name);
            free(session->name);
            session->name = NULL;
            return false;
        }
    spec->session_count++;
    if (is_word(reader, "setup") && !take_block(reader, &session->setup))
        return false;
    while (is_word(reader, "step"))
        if (!parse_step(reader, spec))
            return false;
    if (session->step_count == 0 && !reader->failed)
        return expected(reader, "a step of the session");
    return !is_word(reader, "teardown") || take_block(reader, &session->teardown);
}

/* ---- permutations -------------------------------------------------------------------------------------- */

static bool parse_number(struct reader *reader, int *ret_number)
{
    if (reader->token.kind != TOKEN_NUMBER)
        return expected(reader, "a number of notices");
    errno = 0;
    long number = strtol(reader->token.text, NULL, 10);
    if (errno || number < 1 || number > INT_MAX)
        return wrong(reader, reader->token.line, "the number of notices has to be 1 or more");
    *ret_number = (int)number;
    advance(reader);
    return true;
}

static bool parse_marker(struct reader *reader, const struct spec *spec, const struct permutation_step *of,
                         struct spec_marker *ret_marker)
{
    int line = reader->token.line;
    if (is_sign(reader, '*')) {
        ret_marker->kind = MARKER_ONCE;
        advance(reader);
        return true;
    }
    ret_marker->step = take_step(reader, spec);
    if (ret_marker->step == SIZE_MAX)
        return false;
    if (spec->steps[ret_marker->step].session == spec->steps[of->step].session)
        return wrong(reader, line, "step '%.60s' cannot wait for '%.60s', a step of its session",
                     spec->steps[of->step].name, spec->steps[ret_marker->step].name);
    ret_marker->kind = MARKER_STEP;
    if (!is_word(reader, "notices"))
        return true;
    advance(reader);
    ret_marker->kind = MARKER_NOTICES;
    return parse_number(reader, &ret_marker->notices);
}

/* AT is behind the name of the step: the list in parentheses, if any. */
static bool parse_markers(struct reader *reader, const struct spec *spec, struct permutation_step *step)
{
    if (!is_sign(reader, '('))
        return true;
    do {
        advance(reader);
        if (step->marker_count == SPEC_MARKERS_MAX)
            return wrong(reader, reader->token.line, "a step has more than %d markers", SPEC_MARKERS_MAX);
        if (!parse_marker(reader, spec, step, &step->markers[step->marker_count]))
            return false;
        step->marker_count++;
    } while (is_sign(reader, ','));
    if (!is_sign(reader, ')'))
        return expected(reader, ", or )");
    advance(reader);
    return true;
}

/* The steps, up to the next word of the format. */
static bool parse_steps(struct reader *reader, const struct spec *spec, struct spec_permutation *permutation)
{
    size_t room = 0;
    while (reader->token.kind == TOKEN_QUOTED || (reader->token.kind == TOKEN_WORD && !is_keyword(reader))) {
        if (permutation->count == SPEC_STEPS_MAX)
            return wrong(reader, reader->token.line, "a permutation has more than %d steps", SPEC_STEPS_MAX);
        if (permutation->count == room) {
            room = room ? room * 2 : 8;
            struct permutation_step *grown = realloc(permutation->steps, room * sizeof *grown);
            if (!grown)
                return wrong(reader, 0, "out of memory");
            permutation->steps = grown;
        }
        struct permutation_step *step = &permutation->steps[permutation->count];
        *step = (struct permutation_step){.step = take_step(reader, spec)};
        if (step->step == SIZE_MAX || !parse_markers(reader, spec, step))
            return false;
        permutation->count++;
    }
    return permutation->count > 0 || expected(reader, "the name of a step");
}

static bool parse_permutation(struct reader *reader, struct spec *spec)
{
    if (spec->permutation_count == SPEC_PERMUTATIONS_MAX)
        return wrong(reader, reader->token.line, "there are more than %d permutations",
                     SPEC_PERMUTATIONS_MAX);
    struct spec_permutation *grown = realloc(spec->permutations,
                                             (spec->permutation_count + 1) * sizeof *grown);
    if (!grown)
        return wrong(reader, 0, "out of memory");
    spec->permutations = grown;
    struct spec_permutation *permutation = &spec->permutations[spec->permutation_count++];
    *permutation = (struct spec_permutation){.line = reader->token.line};
    advance(reader);
    return parse_steps(reader, spec, permutation);
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static bool parse_numbered(struct reader *reader, struct sql_block *blocks, size_t *count, const char *what)
{
    if (*count == SPEC_BLOCKS_MAX)
        return wrong(reader, reader->token.line, "there are more than %d blocks '%s'", SPEC_BLOCKS_MAX, what);
    return take_block(reader, &blocks[*count]) && ++*count;
}

static bool parse_invariants(struct reader *reader, struct spec *spec)
{
    while (is_word(reader, "invariant"))
        if (!parse_numbered(reader, spec->invariants, &spec->invariant_count, "invariant"))
            return false;
    return true;
}

static bool parse_file(struct reader *reader, struct spec *spec)
{
    while (is_word(reader, "setup"))
        if (!parse_numbered(reader, spec->setups, &spec->setup_count, "setup"))
            return false;
    if (!parse_invariants(reader, spec) ||
        (is_word(reader, "teardown") && !take_block(reader, &spec->teardown)) ||
        !parse_invariants(reader, spec))
        return false;
    while (is_word(reader, "session"))
        if (!parse_session(reader, spec))
            return false;
    if (spec->session_count == 0 && !reader->failed)
        return expected(reader, "'session' (or before it 'setup', 'teardown' or 'invariant')");
    if (!parse_invariants(reader, spec))
        return false;
    while (is_word(reader, "permutation"))
        if (!parse_permutation(reader, spec))
            return false;
    return reader->failed || reader->token.kind == TOKEN_END ||
           expected(reader, spec->permutation_count ? "'permutation'"
                                                    : "'step', 'session', 'teardown' or 'permutation'");
}

bool spec_parse(const char *path, const char *text, struct spec *ret_spec, char ret_error[SPEC_ERROR_SIZE])
{
    struct reader reader = {.path = path, .at = text, .line = 1, .error = ret_error};
    *ret_spec = (struct spec){.sessions = calloc(SPEC_SESSIONS_MAX, sizeof(struct spec_session))};
    ret_error[0] = 0;
    if (!ret_spec->sessions)
        return wrong(&reader, 0, "out of memory");
    advance(&reader);
    return parse_file(&reader, ret_spec) && !reader.failed;
}

bool spec_parse_permutation(const struct spec *spec, const char *words,
                            struct spec_permutation *ret_permutation, char ret_error[SPEC_ERROR_SIZE])
{
    struct reader reader = {.path = "the schedule", .at = words, .line = 1, .error = ret_error};
    *ret_permutation = (struct spec_permutation){.line = 0};
    ret_error[0] = 0;
    advance(&reader);
    if (parse_steps(&reader, spec, ret_permutation) && !reader.failed &&
        (reader.token.kind == TOKEN_END || expected(&reader, "the name of a step")))
        return true;
    free(ret_permutation->steps);
    ret_permutation->steps = NULL;
    return false;
}

bool spec_read(const char *path, struct spec *ret_spec, char ret_error[SPEC_ERROR_SIZE])
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(FILE_MAX_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, FILE_MAX_BYTES + 1, file) : 0;
    bool well = text && !ferror(file) && length <= FILE_MAX_BYTES && !memchr(text, 0, length);
    *ret_spec = (struct spec){0};
    if (!well)
        (void)snprintf(ret_error, SPEC_ERROR_SIZE, "%.150s cannot be read: %s", path,
                       length > FILE_MAX_BYTES           ? "it has more than 1 MB"
                       : text && memchr(text, 0, length) ? "it is not a text"
                                                         : strerror(errno));
    if (file)
        fclose(file);
    if (well) {
        text[length] = 0;
        well = spec_parse(path, text, ret_spec, ret_error);
    }
    free(text);
    return well;
}

void spec_free(struct spec *spec)
{
    for (size_t i = 0; i < spec->setup_count; i++)
        free(spec->setups[i].sql);
    for (size_t i = 0; i < spec->invariant_count; i++)
        free(spec->invariants[i].sql);
    for (size_t i = 0; i < spec->session_count; i++) {
        free(spec->sessions[i].name);
        free(spec->sessions[i].setup.sql);
        free(spec->sessions[i].teardown.sql);
    }
    for (size_t i = 0; i < spec->step_count; i++) {
        free(spec->steps[i].name);
        free(spec->steps[i].block.sql);
    }
    for (size_t i = 0; i < spec->permutation_count; i++)
        free(spec->permutations[i].steps);
    free(spec->teardown.sql);
    free(spec->sessions);
    free(spec->permutations);
    *spec = (struct spec){0};
}
