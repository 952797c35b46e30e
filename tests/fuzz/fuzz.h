/* What the fuzz targets share: taking the input apart, and ending the run where a promise is broken. */
#ifndef OVERSELL_TESTS_FUZZ_FUZZ_H
#define OVERSELL_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's: called for each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert, which somebody might compile away. libFuzzer keeps the input of a run that aborts. */
#define MUST(condition)                                                                                      \
    ((condition) ? (void)0                                                                                   \
                 : (fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition), abort()))

/* What of the input is still to be used. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

/* The bytes up to SEPARATOR, which is left out, or to the end; borrowed. */
static inline const uint8_t *fuzz_piece(struct fuzz_input *input, uint8_t separator, size_t *ret_size)
{
    const uint8_t *piece = input->at;
    const uint8_t *end = input->left ? memchr(piece, separator, input->left) : NULL;
    *ret_size = end ? (size_t)(end - piece) : input->left;
    size_t used = *ret_size + (end != NULL);
    input->at += used;
    input->left -= used;
    return piece;
}

/* The same as a separate string, to be freed: no longer than needed, so that a read beyond it is seen. */
static inline char *fuzz_text(struct fuzz_input *input, uint8_t separator)
{
    size_t size;
    const uint8_t *piece = fuzz_piece(input, separator, &size);
    char *text = strndup(size ? (const char *)piece : "", size);
    MUST(text);
    return text;
}

#endif
