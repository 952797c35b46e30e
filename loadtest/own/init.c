/* `loadtest init`: writes an example description of a service. */
#include "loadtest/cli/complain.h"
#include "loadtest/command/run_command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* JSON has no comments, so the reader ignores members whose names start with "//". */
static const char START_FILE[] =
    "{\n"
    "  \"//\": \"Describes a service for loadtest check. Members whose names start with // are comments.\",\n"
    "\n"
    "  \"// start\": \"The command that starts the service, in the folder of this file. If the service runs already, "
    "remove start and env, and set database.\",\n"
    "  \"start\": [\"node\", \"server.js\"],\n"
    "  \"// env\": \"Environment variables of the service. {port}: a free port; {postgres}, {redis}: addresses of "
    "the servers; {pghost}, {pgport}, {pguser}, {pgpassword}, {pgdatabase}: the parts of {postgres}.\",\n"
    "  \"env\": {\"PORT\": \"{port}\", \"DATABASE_URL\": \"{postgres}\"},\n"
    "  \"// ready\": \"An address that answers with 2xx when the service is ready. Without it, the service is ready "
    "when its port is open.\",\n"
    "  \"ready\": \"http://127.0.0.1:{port}/healthz\",\n"
    "\n"
    "  \"// database\": \"The command starts a private PostgreSQL, and a private Redis if {redis} is used. To use "
    "real servers, remove the // before database and redis. WARNING: reset then deletes orders in the real "
    "database.\",\n"
    "  \"//database\": \"postgresql://user:password@127.0.0.1:5432/test\",\n"
    "  \"//redis\": \"redis://127.0.0.1:6379\",\n"
    "  \"// schema\": \"A file of SQL, such as a plain dump of pg_dump, that creates the tables in the private PostgreSQL, if the service does "
    "not create them.\",\n"
    "  \"//schema\": \"schema.sql\",\n"
    "\n"
    "  \"// reset\": \"SQL that deletes all orders and sets the stock to {stock}; or a request such as the one "
    "below.\",\n"
    "  \"reset\": [\"DELETE FROM order_item\", \"UPDATE product SET count = {stock} WHERE id = 1\"],\n"
    "  \"// request\": \"The request that buys. {request} is a different number in each request. If body is an "
    "object, it is sent as JSON.\",\n"
    "  \"request\": {\n"
    "    \"method\": \"POST\",\n"
    "    \"url\": \"http://127.0.0.1:{port}/orders\",\n"
    "    \"headers\": {},\n"
    "    \"body\": {\"product_id\": 1, \"quantity\": 1}\n"
    "  },\n"
    "  \"// units\": \"The number of units that one request buys.\",\n"
    "  \"units\": 1,\n"
    "  \"// sold_out\": \"The statuses that mean 'not enough units'. 2xx means sold.\",\n"
    "  \"sold_out\": [409],\n"
    "  \"// answers\": \"Instead of sold_out, if a status does not say enough. has: a JSON Pointer to a value of the "
    "body. To use it, remove the // before answers, and sold_out.\",\n"
    "  \"//answers\": {\"sold\": [201, {\"status\": 303, \"location\": \"/thanks\"}], \"refused\": [{\"status\": 200, "
    "\"has\": \"/errors\"}], \"accepted\": [202]},\n"
    "  \"// settled\": \"SQL that returns true when no accepted order is waiting. Needed for accepted.\",\n"
    "  \"//settled\": \"SELECT count(*) = 0 FROM job\",\n"
    "\n"
    "  \"// stock\": \"SQL for the units in stock, and for the units sold. Each gives one whole number.\",\n"
    "  \"stock\": \"SELECT count FROM product WHERE id = 1\",\n"
    "  \"sold\": \"SELECT coalesce(sum(quantity), 0) FROM order_item WHERE product_id = 1\",\n"
    "  \"// invariant\": \"SQL that must return true after the sale.\",\n"
    "  \"invariant\": [\"SELECT count >= 0 FROM product WHERE id = 1\"],\n"
    "\n"
    "  \"// timeout_ms\": \"Time limits in milliseconds: for each answer, for the start of the service, and until settled "
    "is true.\",\n"
    "  \"timeout_ms\": 10000,\n"
    "  \"start_timeout_ms\": 60000,\n"
    "  \"settle_timeout_ms\": 10000\n"
    "}\n";

struct init_settings {
    const char *out;
    bool force;
};

static const struct option_row ROWS[] = {
    {"--out", "FILE", OPTION_TEXT, offsetof(struct init_settings, out), 0, 0, NULL,
     "The file to write. -: stdout."},
    {"--force", NULL, OPTION_FLAG, offsetof(struct init_settings, force), 0, 0, NULL,
     "Replace a file that exists."},
};

static const struct option_rows OPTIONS = OPTION_ROWS("Output", ROWS);

static int write_file(void *context, const struct texts *operands)
{
    const struct init_settings *settings = context;
    (void)operands;
    if (strcmp(settings->out, "-") == 0)
        return fputs(START_FILE, stdout) >= 0 ? ENDED_AS_EXPECTED : ENDED_ENVIRONMENT;
    FILE *file = fopen(settings->out, settings->force ? "we" : "wxe");
    bool written = file && fputs(START_FILE, file) >= 0;
    int error = errno;
    if (file && fclose(file) != 0) {
        error = errno;
        written = false;
    }
    if (!written) {
        complain("cannot write %s: %s. %s", settings->out, strerror(error),
                 error == EEXIST ? "Name another file with --out, or replace it with --force"
                                 : "Name another file with --out");
        return error == EEXIST ? ENDED_USAGE : ENDED_ENVIRONMENT;
    }
    printf("Wrote %s. Next:\n"
           "  1. Adapt its members to your service. The comment (//) above each member explains it.\n"
           "  2. Run: loadtest check %s\n",
           settings->out, settings->out);
    return ENDED_AS_EXPECTED;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "init",
            .operands = "",
            .summary =
                "Writes an example of shop.json, which describes your service.\n\n"
                "loadtest check and loadtest explore read it. Comments in the file explain its members. The command "
                "starts nothing.",
            .example = "loadtest init --out shop.json",
            .groups = {{&OPTIONS, 0}},
        },
    .begin = write_file,
};

int init_main(int argc, char **argv)
{
    struct init_settings settings = {.out = "shop.json"};
    return run_command(&COMMAND, argc, argv, &settings);
}
