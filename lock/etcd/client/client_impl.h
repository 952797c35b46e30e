/* What the two halves of the etcd client, requests and watches, share. */
#ifndef OVERSELL_LOCK_ETCD_CLIENT_CLIENT_IMPL_H
#define OVERSELL_LOCK_ETCD_CLIENT_CLIENT_IMPL_H

#include "lock/etcd/client/client.h"

#include <curl/curl.h>

enum { ETCD_URL_SIZE = 512 };

/* What has been received and not yet been read. */
struct received {
    char *data;
    size_t length, size;
};

struct etcd {
    char *list; /* the endpoints' text, cut at its commas */
    const char *endpoints[LOCK_ETCD_MOST];
    int count, current;
    bool sent_before;    /* the last request, to another endpoint */
    int64_t left_behind; /* a lease that was to be revoked when no endpoint answered; 0 for none */
    struct curl_slist *headers;
    CURL *requests;
    struct received reply;
    CURLM *multi; /* made for the first watch */
    CURL *watch;
    struct received stream;
    char reason[CURL_ERROR_SIZE];
};

/* A transfer with all options that requests and watches have in common; NULL when out of memory. */
CURL *etcd_new_transfer(struct etcd *etcd, struct received *into, bool is_watch);
/* The endpoint in use has failed: from now on the one after it in the list is asked. */
void etcd_turn_to_next(struct etcd *etcd);

#endif
