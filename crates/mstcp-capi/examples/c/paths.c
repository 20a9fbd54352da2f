/*
 * paths     both ends of a connection in one process, whose streams come and go; says where they go after each step
 *
 * cc paths.c $(pkg-config --cflags --libs mstcp) -o paths
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mstcp.h>

#define MAX_STREAMS 64
#define LIMIT_US 30000000
#define POLL_US 10000

static void check(int result, const char *what) {
    if (result >= 0) return;
    fprintf(stderr, "%s: %s\n", what, mstcp_last_error());
    exit(1);
}

/* Wait until this many streams are open, and say where each goes. */
static void await_streams(const struct mstcp_connection *connection, int wanted, const char *step) {
    struct mstcp_stream_statistics streams[MAX_STREAMS];
    for (int waited_us = 0; waited_us < LIMIT_US; waited_us += POLL_US) {
        int count = mstcp_statistics(connection, streams, MAX_STREAMS), open = 0;
        check(count, step);
        for (int at = 0; at < count; at++) open += streams[at].is_open;
        if (open != wanted) {
            usleep(POLL_US);
            continue;
        }
        printf("%s:", step);
        for (int at = 0; at < count; at++)
            if (streams[at].is_open) printf(" %s-%s", streams[at].local, streams[at].peer);
        puts("");
        return;
    }
    fprintf(stderr, "%s: there are not %d streams\n", step, wanted);
    exit(1);
}

static void carry(const struct mstcp_connection *from, const struct mstcp_connection *to) {
    static const char message[] = "bytes";
    uint8_t came[sizeof message];
    check(mstcp_write(from, (const uint8_t *)message, sizeof message), "write");
    for (size_t have = 0; have < sizeof came;) {
        ssize_t count = mstcp_read(to, came + have, sizeof came - have);
        check(count > 0 ? 0 : -1, "read");
        have += (size_t)count;
    }
    if (memcmp(came, message, sizeof message)) exit(1);
}

int main(void) {
    struct mstcp_listener *listener = mstcp_listen("0.0.0.0", 0, NULL);
    check(listener ? 0 : -1, "listen");
    int port = mstcp_listener_port(listener);
    struct mstcp_stream_spec first = {0}, further = {.source = "127.0.0.3:0", .priority = 1};
    struct mstcp_client_config config = {.most_announced = 1};
    struct mstcp_connection *client = mstcp_connect("127.0.0.1", (uint16_t)port, &first, 1, &config);
    check(client ? 0 : -1, "connect");
    struct mstcp_connection *server = mstcp_accept(listener);
    check(server ? 0 : -1, "accept");
    await_streams(client, 1, "connected");

    char text[32];
    const char *announced[] = {text};
    snprintf(text, sizeof text, "127.0.0.2:%d", port);
    check(mstcp_announce(server, announced, 1), "announce");
    await_streams(client, 2, "announced");
    carry(client, server);
    check(mstcp_announce(server, NULL, 0), "withdraw");
    await_streams(client, 1, "withdrawn");

    int added = mstcp_add_stream(client, &further);
    check(added, "add");
    await_streams(client, 2, "added");
    check(mstcp_set_rate(client, (uint32_t)added, 8e6), "set a rate");
    check(mstcp_set_priority(client, (uint32_t)added, 0), "set a priority");
    check(mstcp_network_changed(client), "look for addresses");
    carry(server, client);
    check(mstcp_remove_stream(client, (uint32_t)added), "remove");
    await_streams(client, 1, "removed");

    if (mstcp_remove_stream(client, (uint32_t)added) < 0) printf("refused: %s\n", mstcp_last_error());
    if (mstcp_announce(client, announced, 1) < 0) printf("refused: %s\n", mstcp_last_error());
    check(mstcp_close(server), "close");
    check(mstcp_close(client), "close");
    mstcp_listener_close(listener);
    return 0;
}
