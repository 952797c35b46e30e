/* TLS to a Redis server: by OpenSSL and hiredis's libhiredis_ssl, where there was one when this was built.
 *
 * The server must show a certificate that is in date, that one of the system's authorities has signed, and that bears
 * the host of the URL as a DNS name or, where the URL has a number, as an IP address. OpenSSL itself reads another list
 * of authorities where SSL_CERT_FILE or SSL_CERT_DIR names one. We show no certificate of our own.
 *
 * A handshake takes some milliseconds, and one that its time limit has cut off starts again: Redlock, which waits for its
 * servers no longer than TTL/200, gets few new connections with a TTL of a second. */
#include "lock/redis/client/tls.h"

#include <errno.h>

#ifdef HAVE_HIREDIS_SSL

#include "lock/redis/client/socket.h"

#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static SSL_CTX *settings; /* of every connection, with the authorities; NULL when out of memory */

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

/* OpenSSL cannot write without SIGPIPE, and it may write whenever it is asked to read. A handler that does nothing,
 * not SIG_IGN: what is ignored would stay ignored in the programs that are run later. */
static void survive_broken_pipes(void)
{
    struct sigaction now, ours = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        (void)sigaction(SIGPIPE, &ours, NULL);
}

static void make_settings(void)
{
    survive_broken_pipes();
    settings = SSL_CTX_new(TLS_client_method());
    if (!settings)
        return;
    SSL_CTX_set_verify(settings, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(settings,
                        SSL_OP_NO_RENEGOTIATION); /* so that to send is never to wait for the server */
    if (SSL_CTX_set_min_proto_version(settings, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_default_verify_paths(settings) != 1) {
        SSL_CTX_free(settings);
        settings = NULL;
    }
}

/* Whom the certificate must name. A server that has several is told which one is meant (SNI), but never by number. */
static bool expect(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *wanted = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1 || /* it is no number otherwise */
           (SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1);
}

static SSL *new_session(const char *host)
{
    pthread_once(&once, make_settings);
    SSL *ssl = settings ? SSL_new(settings) : NULL;
    if (ssl && expect(ssl, host))
        return ssl;
    SSL_free(ssl);
    return NULL;
}

static enum lock_status blame(const SSL *ssl, const char **ret_error)
{
    int system_error = errno;
    long verdict = SSL_get_verify_result(ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    if (verdict != X509_V_OK) {
        *ret_error = X509_verify_cert_error_string(verdict);
        return LOCK_REFUSED;
    }
    if (!reason)
        reason = system_error ? strerrordesc_np(system_error) : "the server hung up";
    *ret_error = reason;
    return LOCK_AWAY;
}

static enum lock_status shake_hands(int fd, SSL *ssl, int64_t until_us, const char **ret_error)
{
    while (true) {
        ERR_clear_error();
        errno = 0;
        int result = SSL_connect(ssl);
        if (result == 1)
            return LOCK_OK;
        int want = SSL_get_error(ssl, result);
        if (want != SSL_ERROR_WANT_READ && want != SSL_ERROR_WANT_WRITE)
            return blame(ssl, ret_error);
        if (!redis_socket_wait(fd, want == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, until_us)) {
            *ret_error = strerrordesc_np(errno);
            return LOCK_AWAY;
        }
    }
}

const char *redis_tls_lacks(void)
{
    return NULL;
}

enum lock_status redis_tls_start(redisContext *context, const char *host, int64_t until_us,
                                 const char **ret_error)
{
    SSL *ssl = new_session(host);
    if (!ssl) {
        *ret_error = "out of memory";
        return LOCK_FAILED;
    }
    ERR_clear_error();
    errno = 0;
    /* hiredis takes the first step of the handshake, and from then on SSL is CONTEXT's and freed with it. */
    if (redisInitiateSSL(context, ssl) == REDIS_OK)
        return shake_hands(context->fd, ssl, until_us, ret_error);
    enum lock_status status = blame(ssl, ret_error);
    SSL_free(ssl);
    return status;
}

bool redis_tls_send(redisContext *context, const char *bytes, size_t size, int64_t until_us)
{
    int done = 0;
    errno = ENOMEM;
    if (redisAppendFormattedCommand(context, bytes, size) != REDIS_OK)
        return false;
    ERR_clear_error();
    errno = 0;
    while (redisBufferWrite(context, &done) == REDIS_OK) {
        if (done)
            return true;
        if (!redis_socket_wait(context->fd, POLLOUT, until_us))
            return false;
        errno = 0;
    }
    if (!errno) /* it was OpenSSL that failed */
        errno = EPROTO;
    return false;
}

#else

const char *redis_tls_lacks(void)
{
    return "rediss:// needs a build with hiredis 1.0 or newer and its libhiredis_ssl";
}

enum lock_status redis_tls_start(redisContext *context, const char *host, int64_t until_us,
                                 const char **ret_error)
{
    (void)context, (void)host, (void)until_us;
    *ret_error = redis_tls_lacks();
    return LOCK_REFUSED;
}

bool redis_tls_send(redisContext *context, const char *bytes, size_t size, int64_t until_us)
{
    (void)context, (void)bytes, (void)size, (void)until_us;
    errno = EPROTONOSUPPORT;
    return false;
}

#endif
