/* Records requests to etcd and its replies as readable text (base/recorder.h). Does nothing in a thread without a recorder. */
#ifndef OVERSELL_LOCK_ETCD_CLIENT_RECORDING_H
#define OVERSELL_LOCK_ETCD_CLIENT_RECORDING_H

#include "base/recorder.h"
#include "lock/lock_driver.h"

/* Records REQUEST to PATH, such as "/v3/kv/txn". Returns its number for the function below; 0: it is not recorded. */
unsigned etcd_record_request(const void *connection, const char *path, const json_t *request);
/* Records the reply, or if STATUS is not LOCK_OK why there is none: ERROR. */
void etcd_record_reply(unsigned request, enum lock_status status, const json_t *reply, const char *error);

#endif
