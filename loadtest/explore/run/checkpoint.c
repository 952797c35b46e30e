/* The file of a checkpoint: a head with the identity of the search, the state as it is in memory, and a checksum. */
#include "loadtest/explore/run/checkpoint.h"
#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct head {
    char magic[16];
    uint64_t size; /* of the state; another version's differs */
    char identity[CHECKPOINT_IDENTITY];
};

static struct head head_of(const struct checkpoint *checkpoint)
{
    struct head head = {.magic = "oversell-hunt-3", .size = sizeof(struct search_state)};
    snprintf(head.identity, sizeof head.identity, "%s", checkpoint->identity);
    return head;
}

/* What a damaged disk gives back must not be taken for counts and lengths. */
static uint64_t sum_of(const struct search_state *made)
{
    return hash_add(HASH_OF_NOTHING, made, sizeof *made);
}

int checkpoint_load(const struct checkpoint *checkpoint, struct search_state *ret_made, char *ret_error,
                    size_t size)
{
    struct head head = {0}, wanted = head_of(checkpoint);
    uint64_t sum = 0;
    FILE *in = fopen(checkpoint->path, "re");
    if (!in && errno == ENOENT)
        return 0;
    if (!in) {
        snprintf(ret_error, size, "%s: %s", checkpoint->path, strerror(errno));
        return -1;
    }
    bool is_ours = fread(&head, sizeof head, 1, in) == 1 && memcmp(&head, &wanted, sizeof head) == 0;
    bool is_whole = is_ours && fread(ret_made, sizeof *ret_made, 1, in) == 1 &&
                    fread(&sum, sizeof sum, 1, in) == 1 && fgetc(in) == EOF && sum == sum_of(ret_made);
    fclose(in);
    if (!is_ours)
        snprintf(ret_error, size,
                 "%s was saved by another search or another version: remove it, or use another --checkpoint",
                 checkpoint->path);
    else if (!is_whole)
        snprintf(ret_error, size, "%s is incomplete: remove it", checkpoint->path);
    else
        return 1;
    return -1;
}

bool checkpoint_save(struct checkpoint *checkpoint, const struct search_state *made, char *ret_error,
                     size_t size)
{
    char beside[sizeof checkpoint->path + 8];
    struct head head = head_of(checkpoint);
    uint64_t sum = sum_of(made);
    snprintf(beside, sizeof beside, "%s.new", checkpoint->path);
    FILE *out = fopen(beside, "we");
    bool written = out && fwrite(&head, sizeof head, 1, out) == 1 &&
                   fwrite(made, sizeof *made, 1, out) == 1 && fwrite(&sum, sizeof sum, 1, out) == 1;
    if (out && fclose(out) != 0)
        written = false;
    written = written && rename(beside, checkpoint->path) == 0;
    if (!written)
        snprintf(ret_error, size, "%s: %s", checkpoint->path, strerror(errno));
    checkpoint->saved_us = monotonic_us();
    return written;
}
