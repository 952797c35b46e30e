/* Reads files in the format of PostgreSQL's isolation tester: which words and blocks may follow each other. */
#include "loadtest/sqlspec/file/spec_file.h"

#include "loadtest/sqlspec/file/spec_tokens.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 1 << 20 };

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
static size_t take_step(struct spec_reader *reader, const struct spec *spec)
{
    int line = reader->token.line;
    char *name = spec_take_name(reader, "the name of a step");
    size_t found = name ? find_step(spec, name) : SIZE_MAX;
    if (name && found == SIZE_MAX)
        (void)spec_wrong(reader, line, "no session has a step '%.60s'", name);
    free(name);
    return found;
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

static bool parse_step(struct spec_reader *reader, struct spec *spec)
{
    struct spec_session *session = &spec->sessions[spec->session_count - 1];
    int line = reader->token.line;
    if (spec->step_count == SPEC_STEPS_MAX)
        return spec_wrong(reader, line, "there are more than %d steps", SPEC_STEPS_MAX);
    spec_advance(reader);
    char *name = spec_take_name(reader, "the name of the step");
    if (name && find_step(spec, name) != SIZE_MAX)
        (void)spec_wrong(reader, line, "a step '%.60s' exists already. Names of steps are unique in the file",
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
        return spec_expected(reader, "SQL in braces");
    step->block.line = reader->token.line;
    step->block.sql = spec_take(reader);
    return step->block.sql != NULL;
}

static bool parse_session(struct spec_reader *reader, struct spec *spec)
{
    int line = reader->token.line;
    if (spec->session_count == SPEC_SESSIONS_MAX)
        return spec_wrong(reader, line, "there are more than %d sessions", SPEC_SESSIONS_MAX);
    spec_advance(reader);
    struct spec_session *session = &spec->sessions[spec->session_count];
    session->name = spec_take_name(reader, "the name of the session");
    if (!session->name)
        return false;
    for (size_t i = 0; i < spec->session_count; i++)
        if (strcmp(spec->sessions[i].name, session->name) == 0) {
            (void)spec_wrong(reader, line, "a session '%.60s' exists already", session->name);
            free(session->name);
            session->name = NULL;
            return false;
        }
    spec->session_count++;
    if (spec_at_word(reader, "setup") && !spec_take_block(reader, &session->setup))
        return false;
    while (spec_at_word(reader, "step"))
        if (!parse_step(reader, spec))
            return false;
    if (session->step_count == 0 && !reader->failed)
        return spec_expected(reader, "a step of the session");
    return !spec_at_word(reader, "teardown") || spec_take_block(reader, &session->teardown);
}

/* ---- permutations -------------------------------------------------------------------------------------- */

static bool parse_number(struct spec_reader *reader, int *ret_number)
{
    if (reader->token.kind != TOKEN_NUMBER)
        return spec_expected(reader, "a number of notices");
    errno = 0;
    long number = strtol(reader->token.text, NULL, 10);
    if (errno || number < 1 || number > INT_MAX)
        return spec_wrong(reader, reader->token.line, "the number of notices has to be 1 or more");
    *ret_number = (int)number;
    spec_advance(reader);
    return true;
}

static bool parse_marker(struct spec_reader *reader, const struct spec *spec,
                         const struct permutation_step *of, struct spec_marker *ret_marker)
{
    int line = reader->token.line;
    if (spec_at_sign(reader, '*')) {
        ret_marker->kind = MARKER_ONCE;
        spec_advance(reader);
        return true;
    }
    ret_marker->step = take_step(reader, spec);
    if (ret_marker->step == SIZE_MAX)
        return false;
    if (spec->steps[ret_marker->step].session == spec->steps[of->step].session)
        return spec_wrong(reader, line, "step '%.60s' cannot wait for '%.60s', a step of its session",
                          spec->steps[of->step].name, spec->steps[ret_marker->step].name);
    ret_marker->kind = MARKER_STEP;
    if (!spec_at_word(reader, "notices"))
        return true;
    spec_advance(reader);
    ret_marker->kind = MARKER_NOTICES;
    return parse_number(reader, &ret_marker->notices);
}

/* AT is behind the name of the step: the list in parentheses, if any. */
static bool parse_markers(struct spec_reader *reader, const struct spec *spec, struct permutation_step *step)
{
    if (!spec_at_sign(reader, '('))
        return true;
    do {
        spec_advance(reader);
        if (step->marker_count == SPEC_MARKERS_MAX)
            return spec_wrong(reader, reader->token.line, "a step has more than %d markers",
                              SPEC_MARKERS_MAX);
        if (!parse_marker(reader, spec, step, &step->markers[step->marker_count]))
            return false;
        step->marker_count++;
    } while (spec_at_sign(reader, ','));
    if (!spec_at_sign(reader, ')'))
        return spec_expected(reader, ", or )");
    spec_advance(reader);
    return true;
}

/* The steps, up to the next word of the format. */
static bool parse_steps(struct spec_reader *reader, const struct spec *spec,
                        struct spec_permutation *permutation)
{
    size_t room = 0;
    while (reader->token.kind == TOKEN_QUOTED ||
           (reader->token.kind == TOKEN_WORD && !spec_at_keyword(reader))) {
        if (permutation->count == SPEC_STEPS_MAX)
            return spec_wrong(reader, reader->token.line, "a permutation has more than %d steps",
                              SPEC_STEPS_MAX);
        if (permutation->count == room) {
            room = room ? room * 2 : 8;
            struct permutation_step *grown = realloc(permutation->steps, room * sizeof *grown);
            if (!grown)
                return spec_wrong(reader, 0, "out of memory");
            permutation->steps = grown;
        }
        struct permutation_step *step = &permutation->steps[permutation->count];
        *step = (struct permutation_step){.step = take_step(reader, spec)};
        if (step->step == SIZE_MAX || !parse_markers(reader, spec, step))
            return false;
        permutation->count++;
    }
    return permutation->count > 0 || spec_expected(reader, "the name of a step");
}

static bool parse_permutation(struct spec_reader *reader, struct spec *spec)
{
    if (spec->permutation_count == SPEC_PERMUTATIONS_MAX)
        return spec_wrong(reader, reader->token.line, "there are more than %d permutations",
                          SPEC_PERMUTATIONS_MAX);
    struct spec_permutation *grown = realloc(spec->permutations,
                                             (spec->permutation_count + 1) * sizeof *grown);
    if (!grown)
        return spec_wrong(reader, 0, "out of memory");
    spec->permutations = grown;
    struct spec_permutation *permutation = &spec->permutations[spec->permutation_count++];
    *permutation = (struct spec_permutation){.line = reader->token.line};
    spec_advance(reader);
    return parse_steps(reader, spec, permutation);
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static bool parse_numbered(struct spec_reader *reader, struct sql_block *blocks, size_t *count,
                           const char *what)
{
    if (*count == SPEC_BLOCKS_MAX)
        return spec_wrong(reader, reader->token.line, "there are more than %d blocks '%s'", SPEC_BLOCKS_MAX,
                          what);
    return spec_take_block(reader, &blocks[*count]) && ++*count;
}

static bool parse_invariants(struct spec_reader *reader, struct spec *spec)
{
    while (spec_at_word(reader, "invariant"))
        if (!parse_numbered(reader, spec->invariants, &spec->invariant_count, "invariant"))
            return false;
    return true;
}

static bool parse_file(struct spec_reader *reader, struct spec *spec)
{
    while (spec_at_word(reader, "setup"))
        if (!parse_numbered(reader, spec->setups, &spec->setup_count, "setup"))
            return false;
    if (!parse_invariants(reader, spec) ||
        (spec_at_word(reader, "teardown") && !spec_take_block(reader, &spec->teardown)) ||
        !parse_invariants(reader, spec))
        return false;
    while (spec_at_word(reader, "session"))
        if (!parse_session(reader, spec))
            return false;
    if (spec->session_count == 0 && !reader->failed)
        return spec_expected(reader, "'session' (or before it 'setup', 'teardown' or 'invariant')");
    if (!parse_invariants(reader, spec))
        return false;
    while (spec_at_word(reader, "permutation"))
        if (!parse_permutation(reader, spec))
            return false;
    return reader->failed || reader->token.kind == TOKEN_END ||
           spec_expected(reader, spec->permutation_count ? "'permutation'"
                                                         : "'step', 'session', 'teardown' or 'permutation'");
}

bool spec_parse(const char *path, const char *text, struct spec *ret_spec, char ret_error[SPEC_ERROR_SIZE])
{
    struct spec_reader reader = {.path = path, .at = text, .line = 1, .error = ret_error};
    *ret_spec = (struct spec){.sessions = calloc(SPEC_SESSIONS_MAX, sizeof(struct spec_session))};
    ret_error[0] = 0;
    if (!ret_spec->sessions)
        return spec_wrong(&reader, 0, "out of memory");
    spec_advance(&reader);
    return parse_file(&reader, ret_spec) && !reader.failed;
}

bool spec_parse_permutation(const struct spec *spec, const char *words,
                            struct spec_permutation *ret_permutation, char ret_error[SPEC_ERROR_SIZE])
{
    struct spec_reader reader = {.path = "the schedule", .at = words, .line = 1, .error = ret_error};
    *ret_permutation = (struct spec_permutation){.line = 0};
    ret_error[0] = 0;
    spec_advance(&reader);
    if (parse_steps(&reader, spec, ret_permutation) && !reader.failed &&
        (reader.token.kind == TOKEN_END || spec_expected(&reader, "the name of a step")))
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
    bool ok = text && !ferror(file) && length <= FILE_MAX_BYTES && !memchr(text, 0, length);
    *ret_spec = (struct spec){0};
    if (!ok)
        (void)snprintf(ret_error, SPEC_ERROR_SIZE, "%.150s cannot be read: %s", path,
                       length > FILE_MAX_BYTES           ? "it has more than 1 MB"
                       : text && memchr(text, 0, length) ? "it is not a text"
                                                         : strerror(errno));
    if (file)
        fclose(file);
    if (ok) {
        text[length] = 0;
        /* Some editors begin a text with a byte order mark. */
        ok = spec_parse(path, text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0), ret_spec, ret_error);
    }
    free(text);
    return ok;
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
