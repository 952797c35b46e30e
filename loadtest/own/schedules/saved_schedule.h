/* Schedules of requests as files: what `loadtest explore shop.json --save` writes for the tests of a service, and --replay reads. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_SAVED_SCHEDULE_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_SAVED_SCHEDULE_H

#include "loadtest/cli/options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct saved_schedule {
    const char *schedule;                         /* schedule_text.h; NULL: none was read */
    int64_t stock, requests, instances, occupied; /* of --occupied */
    bool frees;                                   /* of --frees */
    struct texts env;                             /* words of --env */
    const char *expire_key;                       /* of --expire-key; NULL: none */
    const json_t *steps;                          /* as explored_schedule writes them; NULL: none */
    json_t *document;                             /* owns the texts and the steps */
};

/* Writes FOUND, as explored_schedule returns it, to a file in DIR that is named after its verdict, and creates DIR. DESCRIPTION is the path
 * of shop.json. The file is replaced as a whole or not at all. RET_PATH: where it is. False, having said why on stderr. */
bool saved_schedule_write(const char *dir, const char *description, const json_t *found,
                          const struct saved_schedule *settings, char *ret_path, size_t size);
/* Reads such a file. False, having said on stderr what is wrong; then there is nothing to free. */
bool saved_schedule_read(const char *path, struct saved_schedule *ret_saved);
void saved_schedule_free(struct saved_schedule *saved);

#endif
