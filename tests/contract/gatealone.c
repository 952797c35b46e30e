/* The gate of `loadtest explore shop.json` without an explorer, for tests that compare a server behind it with the server itself.
 *
 *     gatealone postgresql|redis HOST PORT [hold]
 *
 * prints the gate's port, and ends with its standard input. With `hold`, each unit is held and then released, as the explorer does. */
#include "base/clock.h"
#include "loadtest/own/gate/statement_gate.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_ended(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void release_all(struct gate *gate)
{
    for (size_t i = 0; i < GATE_CONNECTIONS; i++)
        if (gate_connection(gate, i)->used && gate_connection(gate, i)->held)
            gate_release(gate, i);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void)fprintf(stderr, "usage: gatealone postgresql|redis HOST PORT [hold]\n");
        return 2;
    }
    const struct gate_server server = {strcmp(argv[1], "redis") == 0 ? &redis_protocol : &postgres_protocol,
                                       argv[2], argv[3]};
    struct gate *gate = gate_open(&server, 1);
    if (!gate)
        return 3;
    gate_lock(gate);
    gate_hold(gate, argc > 4 && strcmp(argv[4], "hold") == 0);
    gate_unlock(gate);
    printf("%u\n", gate_port(gate, 0));
    (void)fflush(stdout);
    const char *said = NULL;
    while (!has_ended()) {
        gate_lock(gate);
        release_all(gate);
        if (gate_problem(gate) && gate_problem(gate) != said)
            (void)fprintf(stderr, "%s\n", said = gate_problem(gate));
        gate_wait(gate, monotonic_us() + 50000);
        gate_unlock(gate);
    }
    gate_close(gate);
    return EXIT_SUCCESS;
}
