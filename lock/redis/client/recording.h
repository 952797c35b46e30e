/* Records commands and scripts for Redis, and its replies, as readable text (base/recorder.h). Does nothing in a thread without a
 * recorder. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_RECORDING_H
#define OVERSELL_LOCK_REDIS_CLIENT_RECORDING_H

#include "base/recorder.h"
#include "lock/lock_driver.h"

#include <hiredis/hiredis.h>

/* Records a command as hiredis has laid it out: SIZE bytes. Returns its number for the functions below; 0: it is not recorded. */
unsigned redis_record_command(const void *connection, const char *bytes, long long size);
/* Records a script with its WORDS, of which the first KEY_COUNT are keys. */
unsigned redis_record_script(const void *connection, const char *command, const char *script, int key_count,
                             const char *const *words, int word_count);
/* Records the reply, or if STATUS is not LOCK_OK why there is none: ERROR. */
void redis_record_reply(unsigned request, enum lock_status status, const redisReply *reply,
                        const char *error);

#endif
