/* A file of SQL steps for several sessions, in the format of PostgreSQL's isolation tester (src/test/isolation/README there), with one
 * more block: `invariant { SQL }`. Pure, except that spec_read reads the file. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_FILE_SPEC_FILE_H
#define OVERSELL_LOADTEST_SQLSPEC_FILE_SPEC_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    SPEC_SESSIONS_MAX = 24, /* the search has a transition for each */
    SPEC_STEPS_MAX = 256,   /* of all sessions, and of one permutation */
    SPEC_BLOCKS_MAX = 64,   /* setup blocks, and invariants */
    SPEC_PERMUTATIONS_MAX = 4096,
    SPEC_MARKERS_MAX = 16, /* of one step in a permutation */
};

/* SQL between braces, without the spaces at its ends. */
struct sql_block {
    char *sql; /* NULL: no such block */
    int line;
};

struct spec_step {
    char *name;
    struct sql_block block;
    size_t session;
    size_t number; /* in its session, from 0 */
};

struct spec_session {
    char *name;
    struct sql_block setup, teardown;
    size_t steps[SPEC_STEPS_MAX]; /* indexes of the specification's steps */
    size_t step_count;
};

enum marker_kind {
    MARKER_ONCE, /* step(*): reported as waiting first, even if it ends at once */
    MARKER_STEP, /* step(other): not reported as completed before the other */
    MARKER_NOTICES, /* step(other notices N): not before the other's session has sent N notices since the step began */
};

struct spec_marker {
    enum marker_kind kind;
    size_t step; /* the other step */
    int notices;
};

struct permutation_step {
    size_t step;
    struct spec_marker markers[SPEC_MARKERS_MAX];
    size_t marker_count;
};

struct spec_permutation {
    struct permutation_step *steps;
    size_t count;
    int line;
};

struct spec {
    struct sql_block setups[SPEC_BLOCKS_MAX], teardown, invariants[SPEC_BLOCKS_MAX];
    size_t setup_count, invariant_count;
    struct spec_session *sessions; /* SPEC_SESSIONS_MAX */
    size_t session_count;
    struct spec_step steps[SPEC_STEPS_MAX];
    size_t step_count;
    struct spec_permutation *permutations;
    size_t permutation_count; /* 0: the file leaves the choice to us */
};

enum { SPEC_ERROR_SIZE = 400 };

/* Reads TEXT, the contents of the file PATH. False, with RET_ERROR: "PATH:LINE: " and what is wrong. In both cases spec_free
 * releases what was made. */
bool spec_parse(const char *path, const char *text, struct spec *ret_spec, char ret_error[SPEC_ERROR_SIZE]);
/* The same for a file of up to 1 MB. */
bool spec_read(const char *path, struct spec *ret_spec, char ret_error[SPEC_ERROR_SIZE]);
/* Reads WORDS, names of steps as in a permutation line without the word `permutation`; names may occur again. The caller
 * frees RET_PERMUTATION->steps. False, with RET_ERROR. */
bool spec_parse_permutation(const struct spec *spec, const char *words,
                            struct spec_permutation *ret_permutation, char ret_error[SPEC_ERROR_SIZE]);
void spec_free(struct spec *spec);

#endif
