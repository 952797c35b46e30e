/* Requests to etcd's JSON gateway, each with an absolute time limit, and what the locks ask of it about leases. */
#include "base/clock.h"
#include "lock/etcd/client/client_impl.h"
#include "lock/etcd/client/recording.h"

#include "base/json.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_REPLY = 1 << 20 /* bytes; what the locks ask for is far shorter */ };
#define LONGEST_LEASE_SECONDS 9000000000 /* etcd grants no longer ones */

/* ---- what is received ---------------------------------------------------------------------------------- */

static size_t receive(char *data, size_t one, size_t length, void *into)
{
    struct received *r = into;
    (void)one; /* libcurl promises that it is 1 */
    if (length > MOST_REPLY - r->length)
        return 0; /* which ends the transfer with an error */
    if (r->length + length > r->size) {
        size_t size = 2 * (r->length + length);
        char *larger = realloc(r->data, size);
        if (!larger)
            return 0;
        r->data = larger;
        r->size = size;
    }
    memcpy(r->data + r->length, data, length);
    r->length += length;
    return length;
}

int64_t etcd_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10) : json_integer_value(value);
}

const json_t *etcd_found(const json_t *reply, size_t i)
{
    const json_t *response = json_array_get(json_object_get(reply, "responses"), i);
    return json_array_get(json_object_get(json_object_get(response, "response_range"), "kvs"), 0);
}

bool etcd_succeeded(const json_t *reply)
{
    return json_is_true(json_object_get(reply, "succeeded"));
}

int64_t etcd_revision(const json_t *reply)
{
    return etcd_number(json_object_get(reply, "header"), "revision");
}

json_t *etcd_bytes(const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strlen(text);
    char *base64 = malloc((length + 2) / 3 * 4 + 1), *end = base64;
    if (!base64)
        return NULL;
    for (size_t i = 0; i < length; i += 3) {
        unsigned bits = 0;
        for (size_t j = i; j < i + 3; j++)
            bits = bits << 8 | (j < length ? (unsigned char)text[j] : 0);
        for (int shift = 18; shift >= 0; shift -= 6)
            *end++ = digits[bits >> shift & 63];
    }
    for (size_t padding = (3 - length % 3) % 3; padding > 0; padding--)
        end[-(ptrdiff_t)padding] = '=';
    *end = '\0';
    json_t *bytes = json_string(base64);
    free(base64);
    return bytes;
}

/* ---- the client ---------------------------------------------------------------------------------------- */

static void initialize(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A command that lockrun runs must not inherit the socket. The socket of a watch is cut while etcd may be writing to
 * it: a reset leaves nothing behind, where an orderly end would keep the port busy for a minute after each wait. */
static curl_socket_t open_socket(void *is_watch, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (fd >= 0 && is_watch)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    return fd;
}

CURL *etcd_new_transfer(struct etcd *etcd, struct received *into, bool is_watch)
{
    CURL *curl = curl_easy_init();
    if (!curl)
        return NULL;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, etcd->headers);
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, into);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, etcd->reason);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, is_watch ? etcd : NULL);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, is_watch ? 1L : 0L);
    return curl;
}

static void split_endpoints(struct etcd *etcd)
{
    char *rest = NULL;
    for (char *url = strtok_r(etcd->list, ", ", &rest); url && etcd->count < LOCK_ETCD_MOST;
         url = strtok_r(NULL, ", ", &rest)) {
        size_t length = strlen(url);
        if (url[length - 1] == '/')
            url[length - 1] = '\0';
        etcd->endpoints[etcd->count++] = url;
    }
}

static void free_client(struct etcd *etcd)
{
    if (!etcd)
        return;
    curl_easy_cleanup(etcd->requests);
    curl_easy_cleanup(etcd->watch);
    curl_multi_cleanup(etcd->multi);
    curl_slist_free_all(etcd->headers);
    free(etcd->reply.data);
    free(etcd->stream.data);
    free(etcd->list);
    free(etcd);
}

/* A client that connects when first needed; NULL when out of memory. */
static struct etcd *new_client(void)
{
    static pthread_once_t initialized = PTHREAD_ONCE_INIT;
    pthread_once(&initialized, initialize);
    struct etcd *etcd = calloc(1, sizeof *etcd);
    if (!etcd)
        return NULL;
    etcd->list = strdup(lock_config.etcd_endpoints);
    /* A member that has lost its leader ends our watch rather than fall silent. */
    etcd->headers = curl_slist_append(NULL, "Grpc-Metadata-hasleader: true");
    etcd->requests = etcd->headers ? etcd_new_transfer(etcd, &etcd->reply, false) : NULL;
    if (!etcd->list || !etcd->requests) {
        free_client(etcd);
        return NULL;
    }
    split_endpoints(etcd);
    return etcd;
}

bool etcd_open_lock(struct lock *lock)
{
    ((struct etcd_lock *)lock)->etcd = new_client();
    return etcd_of(lock);
}

void etcd_close_lock(struct lock *lock)
{
    free_client(etcd_of(lock));
}

/* ---- requests ------------------------------------------------------------------------------------------ */

/* What etcd's errors mean to a lock, by their gRPC codes; every other code is a refusal. */
static enum lock_status meaning_of(int64_t code)
{
    static const struct {
        int64_t code;
        enum lock_status status;
    } meanings[] = {
        {1, LOCK_AWAY},  /* cancelled: it is being stopped */
        {2, LOCK_AWAY},  /* unknown: it has just failed */
        {4, LOCK_AWAY},  /* deadline exceeded */
        {5, LOCK_LOST},  /* not found: of all that we ask for by number, only leases can be */
        {13, LOCK_AWAY}, /* internal error */
        {14, LOCK_AWAY}, /* unavailable: no leader, or too slow to agree */
    };
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].code == code)
            return meanings[i].status;
    return LOCK_REFUSED;
}

/* Takes the reply apart: JSON with an error in it, at one of two places, or without one. */
static enum lock_status read_reply(struct etcd *etcd, struct lock *lock, json_t **ret_reply)
{
    long http = 0;
    curl_easy_getinfo(etcd->requests, CURLINFO_RESPONSE_CODE, &http);
    json_error_t why;
    AUTO_JSON reply = json_read(etcd->reply.data ? etcd->reply.data : "", etcd->reply.length, 0, &why);
    if (!reply && json_error_code(&why) == json_error_out_of_memory)
        return lock_fail(lock, LOCK_FAILED, "etcd: out of memory for a reply");
    const json_t *error = json_object_get(reply, "error");
    if (http == 200 && json_is_object(reply) && !error) {
        *ret_reply = json_incref(reply);
        return LOCK_OK;
    }
    if (!error)
        return lock_fail(lock, http >= 500 ? LOCK_AWAY : LOCK_REFUSED,
                         "etcd: HTTP %ld and nothing of etcd's: is it one?", http);
    bool in_stream = json_is_object(error);
    const char *words = json_string_value(in_stream ? json_object_get(error, "message") : error);
    return lock_fail(lock,
                     meaning_of(in_stream ? etcd_number(error, "grpc_code") : etcd_number(reply, "code")),
                     "etcd: %s", words ? words : "an error without words");
}

/* Is there a server, which speaks something else or says too much? Every other error is of the connection. */
static bool is_strange(CURLcode code)
{
    return code == CURLE_WRITE_ERROR || code == CURLE_UNSUPPORTED_PROTOCOL ||
           code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_BAD_CONTENT_ENCODING ||
           code == CURLE_PEER_FAILED_VERIFICATION;
}

static enum lock_status send_once(struct etcd *etcd, struct lock *lock, const char *path, const char *body,
                                  int64_t limit_ms, json_t **ret_reply)
{
    char url[ETCD_URL_SIZE];
    snprintf(url, sizeof url, "%s%s", etcd->endpoints[etcd->current], path);
    etcd->reply.length = 0;
    *etcd->reason = '\0';
    curl_easy_setopt(etcd->requests, CURLOPT_URL, url);
    curl_easy_setopt(etcd->requests, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(etcd->requests, CURLOPT_TIMEOUT_MS, (long)(limit_ms > 0 ? limit_ms : 1));
    lock->round_trips++;
    CURLcode code = curl_easy_perform(etcd->requests);
    if (code == CURLE_OK)
        return read_reply(etcd, lock, ret_reply);
    return lock_fail(lock, is_strange(code) ? LOCK_REFUSED : LOCK_AWAY, "etcd: %s",
                     *etcd->reason ? etcd->reason : curl_easy_strerror(code));
}

void etcd_turn_to_next(struct etcd *etcd)
{
    etcd->current = (etcd->current + 1) % etcd->count;
}

enum lock_status etcd_call(struct etcd *etcd, struct lock *lock, int64_t deadline_us, const char *path,
                           json_t *request, json_t **ret_reply)
{
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    unsigned recorded = body ? etcd_record_request(etcd, path, request) : 0;
    json_decref(request);
    if (!body)
        return lock_fail(lock, LOCK_FAILED, "etcd: out of memory");
    int64_t end_us = monotonic_us() + lock_command_ms(deadline_us) * 1000;
    enum lock_status status = LOCK_UNAVAILABLE;
    etcd->sent_before = false;
    for (int left = etcd->count; left > 0; left--) { /* one that is silent leaves time for the others */
        status = send_once(etcd, lock, path, body, (end_us - monotonic_us()) / 1000 / left, ret_reply);
        if (status != LOCK_AWAY)
            break;
        long bytes_sent = 0;
        curl_easy_getinfo(etcd->requests, CURLINFO_REQUEST_SIZE, &bytes_sent);
        etcd->sent_before = etcd->sent_before || bytes_sent > 0;
        etcd_turn_to_next(etcd);
    }
    free(body);
    etcd_record_reply(recorded, status, *ret_reply, lock->error);
    return status;
}

bool etcd_was_repeated(const struct etcd *etcd)
{
    return etcd->sent_before;
}

/* ---- leases -------------------------------------------------------------------------------------------- */

/* Notes how long the lease lasts, counted from before it was asked for: etcd's own count begins later. */
static enum lock_status read_lease(struct lock *lock, const json_t *reply, int64_t asked_us,
                                   struct etcd_lease *ret_lease)
{
    int64_t seconds = etcd_number(reply, "TTL"); /* left out, thus zero, where the lease is not alive */
    struct etcd_lease lease = {.id = etcd_number(reply, "ID")};
    if (!lease.id || seconds < 0 || seconds > LONGEST_LEASE_SECONDS)
        return lock_fail(lock, LOCK_REFUSED, "etcd: a lease without a number or a length");
    if (seconds == 0)
        return lock_fail(lock, LOCK_LOST, "etcd: the lease has ended");
    lease.length_us = seconds * 1000000;
    lease.end_us = asked_us + lease.length_us;
    *ret_lease = lease;
    return LOCK_OK;
}

enum lock_status etcd_revoke(struct etcd *etcd, struct lock *lock, int64_t deadline_us, int64_t lease_id)
{
    AUTO_JSON reply = NULL;
    enum lock_status status = etcd_call(etcd, lock, deadline_us, "/v3/lease/revoke",
                                        json_pack("{s:I}", "ID", (json_int_t)lease_id), &reply);
    if (status == LOCK_AWAY)
        etcd->left_behind = lease_id;
    else if (etcd->left_behind == lease_id)
        etcd->left_behind = 0;
    return status == LOCK_LOST && etcd_was_repeated(etcd) ? LOCK_OK : status;
}

enum lock_status etcd_grant(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                            struct etcd_lease *ret_lease)
{
    AUTO_JSON reply = NULL;
    json_int_t seconds = lock->lease_ms <= 1000 ? 1 : (lock->lease_ms - 1) / 1000 + 1;
    int64_t asked_us;
    enum lock_status status;
    do {
        asked_us = monotonic_us();
        status = etcd_call(etcd, lock, deadline_us, "/v3/lease/grant", json_pack("{s:I}", "TTL", seconds),
                           &reply);
    } while (etcd_may_come_back(lock, deadline_us, NULL, status));
    if (status != LOCK_OK)
        return status == LOCK_LOST ? LOCK_REFUSED : status; /* what has only begun cannot be lost */
    if (etcd->left_behind) /* it is back: do not let everybody wait for the end of a lease that nobody needs */
        (void)etcd_revoke(etcd, lock, deadline_us, etcd->left_behind);
    status = read_lease(lock, reply, asked_us, ret_lease);
    return status == LOCK_LOST ? LOCK_REFUSED : status;
}

enum lock_status etcd_keep_alive(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                                 struct etcd_lease *lease)
{
    AUTO_JSON reply = NULL;
    int64_t asked_us = monotonic_us();
    enum lock_status status = etcd_call(etcd, lock, deadline_us, "/v3/lease/keepalive",
                                        json_pack("{s:I}", "ID", (json_int_t)lease->id), &reply);
    return status == LOCK_OK ? read_lease(lock, json_object_get(reply, "result"), asked_us, lease) : status;
}

enum lock_status etcd_freshen(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                              struct etcd_lease *lease)
{
    bool is_fresh = lease->end_us - monotonic_us() > lease->length_us / 10 * 9;
    return is_fresh ? LOCK_OK : etcd_keep_alive(etcd, lock, deadline_us, lease);
}

bool etcd_may_come_back(struct lock *lock, int64_t deadline_us, const struct etcd_lease *lease,
                        enum lock_status status)
{
    enum { ELECTION_POLL_MS = 100 };
    bool may = lease ? monotonic_us() < lease->end_us : etcd_of(lock)->count > 1;
    return status == LOCK_AWAY && may && lock_poll_pause(lock, ELECTION_POLL_MS, deadline_us);
}

int64_t etcd_renewal_due_us(const struct etcd_lease *lease)
{
    return lease->end_us - lease->length_us / 3 * 2;
}

enum lock_status etcd_give_up(struct etcd *etcd, struct lock *lock, int64_t lease_id, enum lock_status status)
{
    char error[sizeof lock->error];
    memcpy(error, lock->error, sizeof error);
    enum lock_status revoked = etcd_revoke(etcd, lock, 0, lease_id);
    if (status == LOCK_TIMED_OUT && revoked != LOCK_OK && revoked != LOCK_LOST)
        return revoked;
    memcpy(lock->error, error, sizeof error);
    return status;
}

int64_t etcd_lease_of(const struct lock_grant *grant)
{
    return (int64_t)strtoull(grant->token, NULL, 16);
}

/* ---- the server ---------------------------------------------------------------------------------------- */

/* Reads a key, as etcdctl's own health check does: answered only where a majority of the members agrees. */
static enum lock_status ping(int64_t deadline_us, char *ret_error, size_t size)
{
    struct lock nobody = {0};
    AUTO_JSON reply = NULL;
    enum lock_status status = LOCK_FAILED;
    struct etcd *etcd = new_client();
    if (etcd)
        status = etcd_call(etcd, &nobody, deadline_us, "/v3/kv/range",
                           json_pack("{s:o,s:b}", "key", etcd_bytes("health"), "keys_only", 1), &reply);
    free_client(etcd);
    snprintf(ret_error, size, "%s", status == LOCK_OK ? "" : nobody.error);
    return status;
}

const struct lock_server etcd_server = {
    .name = "etcd", .setting = "ETCD_ENDPOINTS", .address = &lock_config.etcd_endpoints, .ping = ping};
