/*
 * echo serve PORT [SECRET]              send back what each connection brings, and say where it listens
 * echo send HOST PORT STREAMS BYTES [SECRET]   send BYTES bytes over STREAMS streams to such a server, and say whether all came back
 *
 * cc echo.c $(pkg-config --cflags --libs mstcp) -lpthread -o echo
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mstcp.h>

#define PIECE_BYTES 65536
#define MAX_STREAMS 64

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, mstcp_last_error());
    return 1;
}

/* Write all of it; 0, or -1. */
static int write_all(const struct mstcp_connection *connection, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        ssize_t taken = mstcp_write(connection, bytes, size);
        if (taken < 0) return -1;
        bytes += taken;
        size -= (size_t)taken;
    }
    return 0;
}

static void *serve_one(void *argument) {
    struct mstcp_connection *connection = argument;
    unsigned char piece[PIECE_BYTES];
    ssize_t count;
    while ((count = mstcp_read(connection, piece, sizeof piece)) > 0)
        if (write_all(connection, piece, (size_t)count) < 0) break;
    if (mstcp_close(connection) < 0) fail("a connection ended");
    return NULL;
}

static int serve(int port, const char *secret) {
    struct mstcp_server_config config = {.secret = (const uint8_t *)secret, .secret_length = strlen(secret)};
    struct mstcp_listener *listener = mstcp_listen("127.0.0.1", (uint16_t)port, &config);
    if (!listener) return fail("cannot listen");
    printf("listening on 127.0.0.1:%d\n", mstcp_listener_port(listener));
    fflush(stdout);
    struct mstcp_connection *connection;
    while ((connection = mstcp_accept(listener))) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve_one, connection)) {
            mstcp_abort(connection, "there is no thread for it");
            continue;
        }
        pthread_detach(thread);
    }
    return fail("cannot accept");
}

struct sending {
    const struct mstcp_connection *connection;
    size_t bytes;
};

static void *send_all(void *argument) {
    const struct sending *sending = argument;
    unsigned char piece[PIECE_BYTES];
    for (size_t at = 0; at < sizeof piece; at++) piece[at] = (unsigned char)at;
    for (size_t left = sending->bytes; left > 0;) {
        size_t size = left < sizeof piece ? left : sizeof piece;
        if (write_all(sending->connection, piece, size) < 0) return NULL;
        left -= size;
    }
    mstcp_shutdown(sending->connection);
    return NULL;
}

/* Read as a program with a loop of its own would: wait for the descriptor, then read without waiting. */
static ssize_t read_when_ready(const struct mstcp_connection *connection, unsigned char *piece, size_t size) {
    for (;;) {
        ssize_t count = mstcp_read(connection, piece, size);
        if (count >= 0 || mstcp_last_errno() != EAGAIN) return count;
        struct pollfd entry = {.fd = mstcp_read_descriptor(connection), .events = POLLIN};
        if (entry.fd < 0 || poll(&entry, 1, -1) < 0) return -1;
    }
}

static int send_and_compare(const char *host, int port, int streams, size_t bytes, const char *secret) {
    struct mstcp_stream_spec specs[MAX_STREAMS] = {{0}};
    if (streams < 1 || streams > MAX_STREAMS) return fprintf(stderr, "1 to %d streams\n", MAX_STREAMS), 1;
    struct mstcp_client_config config = {.secret = (const uint8_t *)secret, .secret_length = strlen(secret)};
    struct mstcp_connection *connection = mstcp_connect(host, (uint16_t)port, specs, (size_t)streams, &config);
    if (!connection) return fail("cannot connect");
    pthread_t thread;
    struct sending sending = {connection, bytes};
    if (pthread_create(&thread, NULL, send_all, &sending)) return perror("pthread_create"), 1;
    unsigned char piece[PIECE_BYTES];
    size_t came = 0;
    ssize_t count;
    while ((count = read_when_ready(connection, piece, sizeof piece)) > 0) {
        for (ssize_t at = 0; at < count; at++)
            if (piece[at] != (unsigned char)(came + (size_t)at)) return fprintf(stderr, "other bytes came back\n"), 1;
        came += (size_t)count;
    }
    if (count < 0) return fail("cannot read");
    pthread_join(thread, NULL);
    struct mstcp_stream_statistics statistics[MAX_STREAMS];
    int carried = mstcp_statistics(connection, statistics, MAX_STREAMS);
    if (mstcp_close(connection) < 0) return fail("cannot close");
    printf("%zu bytes came back over %d streams\n", came, carried);
    return came != bytes;
}

int main(int count, char **words) {
    if (count >= 3 && !strcmp(words[1], "serve")) return serve(atoi(words[2]), count > 3 ? words[3] : "");
    if (count >= 6 && !strcmp(words[1], "send"))
        return send_and_compare(words[2], atoi(words[3]), atoi(words[4]), strtoull(words[5], NULL, 10),
                                count > 6 ? words[6] : "");
    fprintf(stderr, "use: echo serve PORT [SECRET], or echo send HOST PORT STREAMS BYTES [SECRET]\n");
    return 2;
}
