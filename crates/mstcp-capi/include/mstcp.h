#ifndef MSTCP_H
#define MSTCP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Multipath connections over several TCP streams.
 *
 * Errors: a function that fails returns NULL or -1; mstcp_last_error() then says why in a sentence, and mstcp_last_errno()
 * as one of errno.h, both for the calling thread.
 *
 * Threads: any thread may call any function. One thread may read a connection while another writes it; a second reader waits
 * for the first, and a second writer likewise. mstcp_close() and mstcp_abort() free the connection: no other call on it may be
 * under way or come after. All connections make progress by a thread that waits in a call, or by one of the library's while none
 * does; that begins with the first connection and does not survive fork(): a child must not use connections of its parent, nor
 * open any.
 */


/*
 Room for an address and its port as text, with the zero at the end.
 */
#define MSTCP_ADDRESS_BYTES 64

/*
 Bytes that came, in the library's memory: see mstcp_read_chunk().
 */
typedef struct mstcp_chunk mstcp_chunk;

/*
 A connection.
 */
typedef struct mstcp_connection mstcp_connection;

/*
 What accepts connections.
 */
typedef struct mstcp_listener mstcp_listener;

/*
 From where a stream goes, and how it is used. All zeros: from wherever the system likes, as fast as TCP allows.
 */
typedef struct mstcp_stream_spec {
  /*
   Source address as "IP:PORT", port 0 for any ("192.0.2.1:0", "[2001:db8::1]:0"); NULL: the system chooses.
   */
  const char *source;
  /*
   Destination address as "IP:PORT"; NULL: that of the connection.
   */
  const char *remote;
  /*
   Goodput at which it is paced, in bit/s; 0: as TCP's congestion control allows.
   */
  double rate_bps;
  /*
   The streams of the lowest value that work carry everything, others are their backup.
   */
  uint8_t priority;
} mstcp_stream_spec;

/*
 How a client's connection is to be. All zeros: without a secret, over the streams that are named.
 */
typedef struct mstcp_client_config {
  /*
   What both sides know, or NULL.
   */
  const uint8_t *secret;
  /*
   Its length in bytes.
   */
  size_t secret_length;
  /*
   To how many of the addresses that the server announces a further stream goes.
   */
  size_t most_announced;
  /*
   Not 0: a stream from each address of this host, followed as they come and go; then no streams are named.
   */
  uint8_t follows_interfaces;
} mstcp_client_config;

/*
 How a server's connections are to be. All zeros: without a secret.
 */
typedef struct mstcp_server_config {
  /*
   What both sides know, or NULL.
   */
  const uint8_t *secret;
  /*
   Its length in bytes.
   */
  size_t secret_length;
  /*
   Further addresses that lead to this server, each "IP:PORT", for clients that want streams there; see mstcp_announce().
   */
  const char *const *announced;
  /*
   How many there are.
   */
  size_t announced_count;
} mstcp_server_config;

/*
 What one stream has carried so far.
 */
typedef struct mstcp_stream_statistics {
  /*
   Its number.
   */
  uint32_t stream;
  /*
   Its own address, "IP:PORT".
   */
  char local[MSTCP_ADDRESS_BYTES];
  /*
   The peer's address.
   */
  char peer[MSTCP_ADDRESS_BYTES];
  /*
   1 while it carries bytes.
   */
  uint8_t is_open;
  /*
   1 while nothing comes through it.
   */
  uint8_t is_stalled;
  /*
   Application bytes sent on it, those that were sent again included.
   */
  uint64_t sent_bytes;
  /*
   Application bytes that came on it.
   */
  uint64_t received_bytes;
  /*
   Application bytes that others had lost, sent again on it.
   */
  uint64_t resent_bytes;
  /*
   What TCP delivers or could, in bit/s; 0: not known.
   */
  double delivery_rate_bps;
  /*
   Smoothed round-trip time in seconds, queues included; 0: not known.
   */
  double round_trip_s;
} mstcp_stream_statistics;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Open a connection over `stream_count` streams, and wait until the first of them is open; the others join by themselves, and a
 stream that is lost is opened again.

 `host` is a name or an address. `streams` may be NULL: then each stream has whatever source the system chooses. `config` may be NULL.
 Returns NULL on failure.

 # Safety
 Pointers are NULL or what they are said to be.
 */
struct mstcp_connection *mstcp_connect(const char *host,
                                       uint16_t port,
                                       const struct mstcp_stream_spec *streams,
                                       size_t stream_count,
                                       const struct mstcp_client_config *config);

/*
 Listen for connections; port 0 is any, see mstcp_listener_port(). `config` may be NULL. Returns NULL on failure.

 # Safety
 Pointers are NULL or what they are said to be.
 */
struct mstcp_listener *mstcp_listen(const char *host, uint16_t port, const struct mstcp_server_config *config);

/*
 The port that it listens on; -1 on failure.

 # Safety
 The listener is one that was not closed.
 */
int mstcp_listener_port(const struct mstcp_listener *listener);

/*
 Wait for the next connection. Returns NULL on failure.

 # Safety
 The listener is one that was not closed.
 */
struct mstcp_connection *mstcp_accept(const struct mstcp_listener *listener);

/*
 Stop listening, and free the listener; connections that were accepted go on. NULL is allowed.

 # Safety
 The listener is NULL or one that was not closed, and no other call on it is under way.
 */
void mstcp_listener_close(struct mstcp_listener *listener);

/*
 Why the last call of this thread that failed did, as a sentence; valid until the next one that fails.
 */
const char *mstcp_last_error(void);

/*
 Why the last call of this thread that failed did, as a number of errno.h.
 */
int mstcp_last_errno(void);

/*
 Wait for bytes, and copy up to `size` of them to `buffer`. Returns how many came; 0: the peer sends no more; -1 on failure.

 # Safety
 The connection was not closed, and the buffer has this many bytes.
 */
ptrdiff_t mstcp_read(const struct mstcp_connection *connection,
                     uint8_t *buffer,
                     size_t size);

/*
 Wait for bytes, and take them where they are, without a copy: `*bytes` points to them until mstcp_chunk_free() of `*chunk`.
 Returns how many came; 0: the peer sends no more, and there is no chunk; -1 on failure.

 # Safety
 The connection was not closed, and both pointers can be written to.
 */
ptrdiff_t mstcp_read_chunk(const struct mstcp_connection *connection,
                           struct mstcp_chunk **chunk,
                           const uint8_t **bytes);

/*
 Free a chunk of mstcp_read_chunk(), by any thread; it may be kept longer than its connection. NULL is allowed.

 # Safety
 The chunk is NULL or one that was not freed.
 */
void mstcp_chunk_free(struct mstcp_chunk *chunk);

/*
 Wait for room, and take up to `size` bytes to be sent. Returns how many were taken, 1 at least; -1 on failure. The peer may
 not have them yet: see mstcp_close().

 # Safety
 The connection was not closed, and the buffer has this many bytes.
 */
ptrdiff_t mstcp_write(const struct mstcp_connection *connection,
                      const uint8_t *buffer,
                      size_t size);

/*
 Wait for room, and send `size` bytes without a copy: they must stay as they are until `release(context)` is called once, by
 whichever thread, and must not call the library. `release` may be NULL: they stay as long as the process. Returns 0, or -1 on
 failure, after which `release` is not called.

 # Safety
 The connection was not closed, and the bytes are there.
 */
int mstcp_write_chunk(const struct mstcp_connection *connection,
                      const uint8_t *bytes,
                      size_t size,
                      void (*release)(void*),
                      void *context);

/*
 Send the end after what was written; reading goes on. Returns 0, or -1 on failure.

 # Safety
 The connection was not closed.
 */
int mstcp_shutdown(const struct mstcp_connection *connection);

/*
 Send what was written and the end, wait until the peer has everything, and free the connection, also on failure. Returns 0, or
 -1 on failure. NULL is allowed.

 # Safety
 The connection was not closed, and no other call on it is under way.
 */
int mstcp_close(struct mstcp_connection *connection);

/*
 Give the connection up at once and free it: what was written may be lost, and the peer is told the reason. NULL is allowed.

 # Safety
 The connection was not closed, no other call on it is under way, and the reason is a string.
 */
void mstcp_abort(struct mstcp_connection *connection,
                 const char *reason);

/*
 Have mstcp_read() and mstcp_write() fail with EAGAIN instead of waiting, if `nonblocking` is not 0. Returns 0, or -1.

 # Safety
 The connection was not closed.
 */
int mstcp_set_nonblocking(const struct mstcp_connection *connection, int nonblocking);

/*
 A descriptor that is readable (POLLIN) while mstcp_read() would not wait. It is the connection's: nothing is to be read from it,
 and it is closed with the connection. Returns -1 on failure.

 # Safety
 The connection was not closed.
 */
int mstcp_read_descriptor(const struct mstcp_connection *connection);

/*
 A descriptor that is readable (POLLIN, not POLLOUT) while mstcp_write() would not wait; as mstcp_read_descriptor().

 # Safety
 The connection was not closed.
 */
int mstcp_write_descriptor(const struct mstcp_connection *connection);

/*
 Open a further stream, and again whenever it is lost; only where mstcp_connect() opened the connection. Returns its number, or -1
 on failure.

 # Safety
 The connection was not closed, and the specification is one or NULL.
 */
int mstcp_add_stream(const struct mstcp_connection *connection,
                     const struct mstcp_stream_spec *spec);

/*
 Take a stream out once the peer has what it carried, and open it no more; the others go on. Returns 0, or -1 on failure: it is the
 last one, or there is none of this number.

 # Safety
 The connection was not closed.
 */
int mstcp_remove_stream(const struct mstcp_connection *connection,
                        uint32_t stream);

/*
 Pace a stream at another goodput in bit/s; 0: as TCP's congestion control allows. Returns 0, or -1 on failure.

 # Safety
 The connection was not closed.
 */
int mstcp_set_rate(const struct mstcp_connection *connection, uint32_t stream, double rate_bps);

/*
 Use a stream by another priority, both ways: see mstcp_stream_spec. Returns 0, or -1 on failure.

 # Safety
 The connection was not closed.
 */
int mstcp_set_priority(const struct mstcp_connection *connection, uint32_t stream, uint8_t priority);

/*
 Announce `count` further addresses that lead here, each "IP:PORT", to the client, which opens streams to as many as its
 configuration says; only where mstcp_accept() returned the connection. They take the place of all that were announced before: an
 address that is missing is withdrawn, and its stream is taken out. Returns 0, or -1 on failure.

 # Safety
 The connection was not closed, and there are this many strings.
 */
int mstcp_announce(const struct mstcp_connection *connection,
                   const char *const *addresses,
                   size_t count);

/*
 Tell that the host's addresses or routes have changed: streams that are lost by it are opened again at once. Returns 0, or -1.

 # Safety
 The connection was not closed.
 */
int mstcp_network_changed(const struct mstcp_connection *connection);

/*
 Fill in the statistics of the first `most` streams. Returns how many streams there are, or -1 on failure.

 # Safety
 The connection was not closed, and `streams` has room for this many, or is NULL and `most` 0.
 */
int mstcp_statistics(const struct mstcp_connection *connection, struct mstcp_stream_statistics *streams, size_t most);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MSTCP_H */
