/*
 * transfer sink HOST PORT                                  receive one transfer, and say as JSON what came in which time
 * transfer source HOST PORT SECONDS [SOURCE:PORT ...]      send for SECONDS seconds, over a stream from each source
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mstcp.h>

#define PIECE_BYTES (1 << 20)
#define MAX_STREAMS 64

static unsigned char piece[PIECE_BYTES];
static atomic_size_t borrowed; // times that the library has the piece

static void release(void *times) {
    atomic_fetch_sub((atomic_size_t *)times, 1);
}

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, mstcp_last_error());
    return 1;
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int sink(const char *host, int port) {
    struct mstcp_listener *listener = mstcp_listen(host, (uint16_t)port, NULL);
    if (!listener) return fail("cannot listen");
    printf("listening on port %d\n", mstcp_listener_port(listener));
    fflush(stdout);
    struct mstcp_connection *connection = mstcp_accept(listener);
    if (!connection) return fail("cannot accept");
    double began_s = 0;
    size_t bytes = 0;
    ssize_t count;
    struct mstcp_chunk *chunk;
    const unsigned char *there;
    while ((count = mstcp_read_chunk(connection, &chunk, &there)) > 0) {
        if (began_s == 0) began_s = now_s();
        bytes += (size_t)count;
        mstcp_chunk_free(chunk);
    }
    if (count < 0) return fail("cannot read");
    printf("{\"bytes\": %zu, \"seconds\": %.9f}\n", bytes, now_s() - began_s);
    if (mstcp_close(connection) < 0) return fail("cannot close");
    mstcp_listener_close(listener);
    return 0;
}

static int source(const char *host, int port, double seconds, char **sources, int count) {
    struct mstcp_stream_spec specs[MAX_STREAMS] = {{0}};
    if (count > MAX_STREAMS) return fprintf(stderr, "at most %d sources\n", MAX_STREAMS), 1;
    for (int at = 0; at < count; at++) specs[at].source = sources[at];
    struct mstcp_connection *connection = mstcp_connect(host, (uint16_t)port, specs, count ? (size_t)count : 1, NULL);
    if (!connection) return fail("cannot connect");
    for (double until_s = now_s() + seconds; now_s() < until_s;) {
        atomic_fetch_add(&borrowed, 1);
        if (mstcp_write_chunk(connection, piece, sizeof piece, release, &borrowed) < 0) return fail("cannot write");
    }
    if (mstcp_close(connection) < 0) return fail("cannot close");
    // The peer has everything, and the library nothing of ours.
    return atomic_load(&borrowed) != 0;
}

int main(int count, char **words) {
    if (count == 4 && !strcmp(words[1], "sink")) return sink(words[2], atoi(words[3]));
    if (count >= 5 && !strcmp(words[1], "source"))
        return source(words[2], atoi(words[3]), atof(words[4]), words + 5, count - 5);
    fprintf(stderr, "use: transfer sink HOST PORT, or transfer source HOST PORT SECONDS [SOURCE:PORT ...]\n");
    return 2;
}
