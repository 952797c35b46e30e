/* Load runs: the service starts `loadtest compare` against itself, shows its progress, and keeps the results. One run at a time. */
#ifndef OVERSELL_SERVICE_RUNS_RUNS_H
#define OVERSELL_SERVICE_RUNS_RUNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct config;
struct runs;

/* The run that a caller asks for. */
struct run_order {
    json_t *strategies; /* names; taken over by runs_start where it succeeds */
    int64_t product_id; /* the product that the run sells; its orders are deleted */
    bool own_settings;  /* switch only this product's strategy */
    int64_t instances;  /* service processes that sell: this one, and others that the run starts */
    int64_t connections, stock, quantity;
    int64_t requests; /* 0: the load test decides */
    int64_t duration_ms, think_ms;
    int64_t longest_ms; /* the service ends the run after this time */
    char address[48];   /* of the client; "": clients may share it */
};

enum run_start { RUN_STARTED, RUN_GOES_ON, RUN_WAITS, RUN_IMPOSSIBLE };

/* Any thread may call these. CONFIG must live as long; its servers are what further instances use. */
struct runs *runs_new(const struct config *config);
/* Ends the run in progress and waits until all its processes have ended. From here on runs_start starts none. */
void runs_stop(struct runs *runs);
void runs_free(struct runs *runs);

/* Starts a run against PORT of this service. RUN_GOES_ON: the run *ret_id is in progress. RUN_WAITS: no run is in
 * progress, but another product asked earlier; *ret_id is the last run. Both give the product a place in the queue for runs,
 * which it keeps if it asks again at least every RUN_PLACE_MS. So a product that has just run comes after all others, and so do all
 * products that the same address has asked for.
 * RUN_IMPOSSIBLE: no thread or memory, or the service is stopping or starting (PORT 0). */
enum { RUN_PLACE_MS = 3000 };
enum run_start runs_start(struct runs *runs, const struct run_order *order, uint16_t port, int64_t *ret_id);
/* The run as JSON text, which the caller frees; NULL: the run is not kept, or memory is out. */
char *runs_text(struct runs *runs, int64_t id);
/* The traces of the processes that were started for the run, as JSON text, which the caller frees. NULL as above. */
char *runs_traces(struct runs *runs, int64_t id);
/* The product that it sells; 0: the run is not kept. */
int64_t runs_product(struct runs *runs, int64_t id);
/* Ends a run that is in progress and waits until all its processes have ended; a run that has ended stays as it is. False: the
 * run is not kept. */
bool runs_cancel(struct runs *runs, int64_t id);
/* Cancels the product's run, if one is in progress, and removes the product from the queue for runs. WAITS: returns when
 * the run has ended. */
void runs_end_product(struct runs *runs, int64_t product_id, bool waits);
/* The run in progress, or else the last one: {"id","state","product_id","strategy","share"}; null: there was none. */
json_t *runs_summary(struct runs *runs);

#endif
