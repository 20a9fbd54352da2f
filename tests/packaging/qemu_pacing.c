/* For trying aarch64 wheels under qemu (CONTRIBUTING.md). Its emulation of Linux refuses SO_MAX_PACING_RATE, which kernels
 * have since 3.13: preloaded, this library says that the option was set. */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_PACING_RATE = 47 };

int setsockopt(int socket, int level, int name, const void *value, socklen_t size) {
    if (level == SOL_SOCKET && name == MAX_PACING_RATE) return 0;
    return (int)syscall(SYS_setsockopt, socket, level, name, value, size);
}
