/* The Idempotency-Key: which are taken, and that one is the same key again when PostgreSQL has read it. */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/service/http/fake_exchange.h"

#include "db/postgres/array.h"
#include "service/orders/order_job.h"

static const struct order_request *admitted; /* while it is looked at */
static bool was_admitted;

/* What PostgreSQL makes of the first element of an array's text; to be freed. */
static char *first_element(const char *array)
{
    MUST(array[0] == '{' && array[1] == '"');
    char *text = calloc(1, strlen(array)), *end = text;
    MUST(text);
    for (array += 2; *array != '"'; array++) {
        array += *array == '\\';
        MUST(*array);
        *end++ = *array;
    }
    MUST(strcmp(array, "\"}") == 0);
    return text;
}

static void look_at(const char *key)
{
    struct array array;
    const char *value;
    arrays_begin(&array, 1);
    array_add(&array, key);
    MUST(arrays_end(&array, 1, &value));
    char *again = first_element(value);
    MUST(strcmp(again, key) == 0);
    free(again);
    arrays_free(&array, 1);
}

void order_job_queue(struct order_pipeline *pipeline, struct exchange *x, const struct order_request *request,
                     json_t *body, const struct strategy *strategy)
{
    (void)pipeline;
    (void)strategy;
    admitted = request;
    was_admitted = true;
    MUST(request->product_id == 1 && request->quantity == 2);
    look_at(request->idempotency_key);
    json_decref(body);
    reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, NULL, "the order was read");
    http_finish(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct service service;
    static const char body[] = "{\"product_id\":1,\"quantity\":2}";
    struct fuzz_input input = {data, size};
    static struct fake_exchange fake;
    fake = (struct fake_exchange){.service = &service};
    char *key = fuzz_text(&input, '\n');
    size_t length = 0;
    while (key[length] > ' ' && key[length] < 0x7f)
        length++;
    bool valid = length >= 1 && length <= 255 && !key[length] && input.left == 0;

    fake_request(&fake, "POST", "/orders", body, sizeof body - 1);
    fake_header(&fake, "idempotency-key", key);
    if (input.left > 0) /* twice is once too often */
        fake_header(&fake, "Idempotency-Key", "another");
    was_admitted = false;
    orders_create(&fake.x, NULL);
    MUST(was_admitted == valid && fake.x.status == (valid ? 503 : 400));
    look_at(key); /* as a receiver's name, which may be any text */
    free(key);
    fake_free(&fake);
    return 0;
}
