/* `loadtest init`: writes a description of a service, to be changed. */
#include "loadtest/cli/complain.h"
#include "loadtest/command/run_command.h"
#include "loadtest/own/description.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct init {
    const char *out;
};

static const struct option_row ROWS[] = {
    {"--out", "FILE", OPTION_TEXT, offsetof(struct init, out), 0, 0, NULL,
     "File to write; it must not exist yet. (default: shop.json)"},
};
static const struct option_rows OPTIONS = OPTION_ROWS("What to write", ROWS);

static int begin(void *context, const struct texts *operands)
{
    const struct init *init = context;
    (void)operands;
    FILE *file = fopen(init->out, "wxe");
    bool written = file && fputs(description_example, file) >= 0;
    if (file)
        written &= fclose(file) == 0;
    if (!written) {
        complain("cannot write %s: %s; choose another file with --out", init->out, strerror(errno));
        return ENDED_USAGE;
    }
    printf("%s describes a service that sells. Change it for yours, then run:\n\n  loadtest check %s\n",
           init->out, init->out);
    return ENDED_AS_EXPECTED;
}

static const struct command COMMAND = {
    .line =
        {
            .name = "init",
            .operands = "",
            .summary = "Writes a description of a service, shop.json, with an explanation of each member.",
            .example = "loadtest init --out shop.json",
            .groups = {{&OPTIONS, 0}},
        },
    .begin = begin,
};

int init_main(int argc, char **argv)
{
    static struct init init = {.out = "shop.json"};
    return run_command(&COMMAND, argc, argv, &init);
}
