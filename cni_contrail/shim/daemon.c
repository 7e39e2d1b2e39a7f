#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol.h"
#include "request.h"
#include "streams.h"

#define DEFAULT_SOCKET "/run/contrail/cni.sock"
#define SOCKET_VARIABLE "CONTRAIL_CNI_SOCKET"
#define AWAY_PAUSE 50 /* milliseconds between two attempts to connect */
/*
 * How long the daemon may be away while it is replaced: a stopping one drains its calls for up to 5 s, and the next one
 * has to start. Tests build with a shorter time.
 */
#ifndef AWAY_SECONDS
#define AWAY_SECONDS 10
#endif

static const char *socket_path(void)
{
    const char *path = variable(SOCKET_VARIABLE);
    return *path != '\0' ? path : DEFAULT_SOCKET;
}

/* For STATUS, any failure of the daemon means that no ADD can be served. */
_Noreturn void fail_daemon(enum code code, const char *cause)
{
    const char *message = code == TRY_AGAIN ? "contrail-cnid unavailable" : "contrail-cnid violates the protocol";
    bool is_status = strcmp(variable("CNI_COMMAND"), "STATUS") == 0;
    fail(is_status ? UNAVAILABLE : code, message, cause, socket_path());
}

/*
 * Connects; tries at least once. SO_SNDTIMEO limits the wait while the backlog is full. Unlike with TCP, a Unix
 * connect() that a signal interrupts has done nothing and can be repeated.
 */
static bool connect_within(int daemon, const struct sockaddr_un *address, int64_t deadline)
{
    do {
        int left = time_left(deadline);
        left = left > 0 ? left : 1; /* 0 would be no limit */
        struct timeval patience = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
        if (setsockopt(daemon, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
            return false;
        if (connect(daemon, (const struct sockaddr *)address, sizeof *address) == 0)
            return fcntl(daemon, F_SETFL, O_NONBLOCK) == 0;
        if (!is_passing(errno))
            return false;
    } while (time_left(deadline) > 0);
    return false;
}

/* Whether the error of connect() or read() says that no daemon runs, or that it has just ended. */
static bool is_away(int error)
{
    return error == 0 || error == ENOENT || error == ECONNREFUSED || error == ECONNRESET;
}

static int connect_daemon(int64_t deadline)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(socket_path());
    if (size >= sizeof address.sun_path)
        fail(BAD_ENVIRONMENT, SOCKET_VARIABLE, "path is too long for a socket", socket_path());
    memcpy(address.sun_path, socket_path(), size);
    int daemon = above_standard_streams(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (daemon < 0)
        fail_daemon(TRY_AGAIN, strerror(errno));
    while (!connect_within(daemon, &address, deadline))
        if (!is_away(errno) || !pause_before(AWAY_PAUSE, deadline))
            fail_daemon(TRY_AGAIN, why("connecting timed out after " TEXT(AWAY_SECONDS) " s"));
    return daemon;
}

/* Sends the request. A daemon may reject it and close before it has read all: then the response is read anyway. */
static void send_request(int daemon, char *request, size_t size, int netns, int64_t deadline)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof netns)];
    } control = {{.cmsg_len = CMSG_LEN(sizeof netns), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &netns, sizeof netns);
    struct iovec rest = {.iov_base = request, .iov_len = size};
    struct msghdr message = {.msg_iov = &rest, .msg_iovlen = 1};
    message.msg_control = netns < 0 ? NULL : &control;
    message.msg_controllen = netns < 0 ? 0 : sizeof control;
    while (rest.iov_len > 0 && wait_for(daemon, POLLOUT, deadline)) {
        ssize_t count = sendmsg(daemon, &message, MSG_NOSIGNAL);
        if (count > 0) {
            rest = (struct iovec){.iov_base = (char *)rest.iov_base + count, .iov_len = rest.iov_len - (size_t)count};
            message.msg_control = NULL;
            message.msg_controllen = 0;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return;
        } else if (!is_passing(errno)) {
            fail_daemon(TRY_AGAIN, strerror(errno));
        }
    }
}

/* Returns false with errno if the daemon ended before it acknowledged the request. */
static bool is_acknowledged(int daemon, int64_t deadline)
{
    char byte = 0;
    if (read_full(daemon, &byte, sizeof byte, deadline) == 0) {
        if (is_away(errno))
            return false;
        fail_daemon(TRY_AGAIN, why("no acknowledgement after " TEXT(ACKNOWLEDGE_SECONDS) " s"));
    }
    if (byte != 1)
        fail_daemon(BAD_DAEMON, "invalid acknowledgement");
    return true;
}

int request_daemon(char *request, size_t size, int netns)
{
    int64_t away = deadline_in(AWAY_SECONDS);
    for (;;) {
        int daemon = connect_daemon(away);
        int64_t deadline = deadline_in(ACKNOWLEDGE_SECONDS);
        send_request(daemon, request, size, netns, deadline);
        if (is_acknowledged(daemon, deadline))
            return daemon;
        if (!pause_before(AWAY_PAUSE, away))
            fail_daemon(TRY_AGAIN, why(NULL));
        (void)close(daemon); /* nothing is lost with it */
    }
}
