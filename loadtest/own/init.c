/* `loadtest init`: writes a description of a service to start from. */
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
    "  \"// start\": \"The command that starts the service in the folder of this file. Remove start and env if it runs already; "
    "then database is needed.\",\n"
    "  \"start\": [\"node\", \"server.js\"],\n"
    "  \"// env\": \"What the service reads its addresses from. {port}: a free port; {postgres}, {redis}: addresses; {pghost}, "
    "{pgport}, {pguser}, {pgpassword}, {pgdatabase}: parts of the first.\",\n"
    "  \"env\": {\"PORT\": \"{port}\", \"DATABASE_URL\": \"{postgres}\"},\n"
    "  \"// ready\": \"An address that answers with 2xx when the service is ready. Without it: as soon as the port is open.\",\n"
    "  \"ready\": \"http://127.0.0.1:{port}/healthz\",\n"
    "\n"
    "  \"// database\": \"The command starts a private PostgreSQL, and a private Redis if {redis} is used. To use real servers, remove "
    "the // from these names. ALL orders that reset deletes are then deleted there.\",\n"
    "  \"//database\": \"postgresql://user:password@127.0.0.1:5432/test\",\n"
    "  \"//redis\": \"redis://127.0.0.1:6379\",\n"
    "  \"// schema\": \"To create the tables in the private PostgreSQL, if the service does not: a file of plain SQL.\",\n"
    "  \"//schema\": \"schema.sql\",\n"
    "\n"
    "  \"// reset\": \"SQL that removes all orders and sets the stock to {stock}; or a request as below.\",\n"
    "  \"reset\": [\"DELETE FROM order_item\", \"UPDATE product SET count = {stock} WHERE id = 1\"],\n"
    "  \"// request\": \"What buys. {request} is a number that differs in each request. A body that is an object is sent as JSON.\",\n"
    "  \"request\": {\n"
    "    \"method\": \"POST\",\n"
    "    \"url\": \"http://127.0.0.1:{port}/orders\",\n"
    "    \"headers\": {},\n"
    "    \"body\": {\"product_id\": 1, \"quantity\": 1}\n"
    "  },\n"
    "  \"// units\": \"How many units one request buys.\",\n"
    "  \"units\": 1,\n"
    "  \"// sold_out\": \"The statuses that mean: there are not enough units. 2xx means sold.\",\n"
    "  \"sold_out\": [409],\n"
    "\n"
    "  \"// stock\": \"SQL for the units in stock, and for the units sold. Each gives one whole number.\",\n"
    "  \"stock\": \"SELECT count FROM product WHERE id = 1\",\n"
    "  \"sold\": \"SELECT coalesce(sum(quantity), 0) FROM order_item WHERE product_id = 1\",\n"
    "  \"// invariant\": \"What must be true after the sale as well.\",\n"
    "  \"invariant\": [\"SELECT count >= 0 FROM product WHERE id = 1\"],\n"
    "\n"
    "  \"// timeout_ms\": \"For each answer; and until the service is ready.\",\n"
    "  \"timeout_ms\": 10000,\n"
    "  \"start_timeout_ms\": 60000\n"
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
           "  1. Adapt its members to your service. The member that starts with // above each explains it.\n"
           "  2. Run: loadtest check %s\n",
           settings->out, settings->out);
    return ENDED_AS_EXPECTED;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "init",
            .operands = "",
            .summary = "Writes a description of a service to start from, for loadtest check.\n"
                       "\n"
                       "The file explains each of its members. Nothing is started.",
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
