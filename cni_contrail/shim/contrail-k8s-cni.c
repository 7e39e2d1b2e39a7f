/*
 * contrail-k8s-cni: native shim, forwards one CNI call to the node daemon contrail-cnid and prints its response.
 *
 * A runtime starts a process per call. This one starts in a tenth of a millisecond, needs no library and no
 * interpreter on the node, and opens CNI_NETNS where the runtime's paths are valid, so the daemon can run in a
 * container. It handles only what the daemon cannot: VERSION, which runtimes call while no daemon runs, and errors when
 * the daemon is missing, hangs, restarts in the middle of a call, or sends an invalid response.
 *
 * Protocol: one connection per request, integers big-endian.
 *   to the daemon    header: "cnid", version u16, 0 u16, netns i32, environment size u32, input size u32;
 *                    environment: KEY=VALUE\0 for each CNI_ variable; input: standard input unchanged.
 *                    netns: 0 (a descriptor comes with the first byte), an errno (opening failed), -1 (no CNI_NETNS)
 *   from the daemon  0x01 when it has read the whole request, within ACKNOWLEDGE_SECONDS of connecting. It has not begun
 *                    the call before that: if the connection is lost, the request is repeated
 *   from the daemon  exit status u32, output size u32, output, within ANSWER_SECONDS of the acknowledgement
 *   to the daemon    0x01 when all output is written: if we exit without sending it, the daemon rolls an ADD back
 *
 * All memory is static; the kernel provides only the pages that are used. Every wait has a deadline.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/contrail/cni.sock"
#define SOCKET_VARIABLE "CONTRAIL_CNI_SOCKET"
#define PROTOCOL_VERSION 1
#define ENVIRONMENT_LIMIT 65536
#define INPUT_LIMIT 1048576
#define OUTPUT_LIMIT 1048576
#define QUOTE_LIMIT 256 /* bytes of a value in an error message */
#define ACKNOWLEDGE_SECONDS 2
#define AWAY_PAUSE 50 /* milliseconds between two attempts to connect */
#ifndef AWAY_SECONDS /* how long the daemon may be away, as during its upgrade; tests build with a shorter time */
#define AWAY_SECONDS 3
#endif
#ifndef ANSWER_SECONDS /* tests build with a shorter timeout */
#define ANSWER_SECONDS 120
#endif

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define VERSIONS(separator) \
    "0.1.0" separator "0.2.0" separator "0.3.0" separator "0.3.1" separator "0.4.0" separator "1.0.0" separator "1.1.0"
#define VERSION_DOCUMENT "{\"cniVersion\": \"1.1.0\", \"supportedVersions\": [\"" VERSIONS("\", \"") "\"]}\n"
#define ABOUT                                                                  \
    "contrail-k8s-cni attaches Kubernetes pods to Contrail virtual networks\n" \
    "CNI protocol versions supported: " VERSIONS(", ") "\n"

enum code { BAD_ENVIRONMENT = 4, BAD_INPUT = 5, BAD_CONFIG = 6, TRY_AGAIN = 11, UNAVAILABLE = 50, BAD_DAEMON = 107 };

static struct {
    struct {
        char magic[4];
        uint16_t version, reserved;
        int32_t netns;
        uint32_t environment_size, input_size;
    } header;
    char body[ENVIRONMENT_LIMIT + INPUT_LIMIT + 1]; /* one more, to detect longer input */
} request;

struct answer {
    uint32_t status, size;
};
static char output[OUTPUT_LIMIT];

_Static_assert(sizeof request.header == 20 && sizeof(struct answer) == 8, "wire structures must not be padded");

/* Waiting, reading and writing, with deadlines in milliseconds of the monotonic clock. */

static int64_t milliseconds_now(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t deadline_in(int seconds)
{
    return milliseconds_now() + (int64_t)seconds * 1000;
}

/* Returns the milliseconds until the deadline; 0 with errno ETIME after it. */
static int time_left(int64_t deadline)
{
    int64_t left = deadline - milliseconds_now();
    errno = ETIME;
    return left > 0 ? (int)left : 0;
}

/* Waits until a descriptor is ready or broken. Returns false with errno if the deadline passes. */
static bool wait_for(int descriptor, short event, int64_t deadline)
{
    struct pollfd polled = {.fd = descriptor, .events = event};
    for (int left; (left = time_left(deadline)) > 0;) {
        int count = poll(&polled, 1, left);
        if (count > 0)
            return true;
        if (count < 0 && errno != EINTR)
            return false;
    }
    return false;
}

/* Waits a moment before the next attempt to connect; returns false with errno unchanged after the deadline. */
static bool pause_before(int64_t deadline)
{
    int error = errno;
    int left = time_left(deadline);
    if (left > 0)
        (void)poll(NULL, 0, left < AWAY_PAUSE ? left : AWAY_PAUSE); /* if a signal ends it early, no harm is done */
    errno = error;
    return left > 0;
}

/* Whether a system call is to be retried. */
static bool is_passing(int error)
{
    return error == EINTR || error == EAGAIN;
}

/* Fills the buffer and returns the number of bytes read: if fewer, errno is set, or 0 at the end of the input. */
static size_t read_full(int descriptor, void *buffer, size_t size, int64_t deadline)
{
    size_t got = 0;
    while (got < size && wait_for(descriptor, POLLIN, deadline)) {
        errno = 0;
        ssize_t count = read(descriptor, (char *)buffer + got, size - got);
        if (count > 0)
            got += (size_t)count;
        else if (count == 0 || !is_passing(errno))
            break;
    }
    return got;
}

/* Writes all bytes. A pipe that polls writable takes PIPE_BUF bytes without blocking, so the deadline holds. */
static bool write_full(int descriptor, const char *bytes, size_t size, int64_t deadline)
{
    for (size_t sent = 0; sent < size;) {
        if (!wait_for(descriptor, POLLOUT, deadline))
            return false;
        ssize_t count = write(descriptor, bytes + sent, size - sent < PIPE_BUF ? size - sent : PIPE_BUF);
        if (count >= 0)
            sent += (size_t)count;
        else if (!is_passing(errno))
            return false;
    }
    return true;
}

/* Output for people and runtimes. */

static void complain(const char *text)
{
    /* Best effort: there is no other place to report that this failed. */
    (void)write_full(STDERR_FILENO, text, strlen(text), deadline_in(ACKNOWLEDGE_SECONDS));
}

/* Describes by errno why a wait failed: the deadline passed, the peer closed the connection (0), or an error. */
static const char *why(const char *too_late)
{
    return errno == ETIME ? too_late : errno == 0 ? "connection closed" : strerror(errno);
}

/* Writes a response to standard output; returns whether all of it was written. */
static bool print(const char *bytes, size_t size)
{
    if (write_full(STDOUT_FILENO, bytes, size, deadline_in(ANSWER_SECONDS)))
        return true;
    const char *cause = why("timed out, nothing reads it");
    complain("contrail-k8s-cni: standard output: cannot be written: ");
    complain(cause);
    complain("\n");
    return false;
}

/* Appends text inside a JSON string. Bytes other than printable ASCII become \xNN, so any input is valid. */
static char *quote(char *end, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < QUOTE_LIMIT && text[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < ' ' || byte > '~') {
            const char shown[] = {'\\', '\\', 'x', digits[byte >> 4], digits[byte & 15]};
            end = mempcpy(end, shown, sizeof shown);
        } else {
            if (byte == '"' || byte == '\\')
                *end++ = '\\';
            *end++ = text[i];
        }
    }
    return end;
}

/* Prints the error "message: cause" and exits. Cause and details may be NULL. */
static _Noreturn void fail(enum code code, const char *message, const char *cause, const char *details)
{
    static char line[3 * 5 * QUOTE_LIMIT + 128]; /* three texts, of at most five bytes per byte */
    char *end = line + sprintf(line, "{\"cniVersion\": \"1.1.0\", \"code\": %u, \"msg\": \"", code);
    end = quote(end, message);
    if (cause != NULL) {
        end = stpcpy(end, ": ");
        end = quote(end, cause);
    }
    if (details != NULL) {
        end = stpcpy(end, "\", \"details\": \"");
        end = quote(end, details);
    }
    end = stpcpy(end, "\"}\n");
    (void)print(line, (size_t)(end - line)); /* the exit status is the same */
    _exit(EXIT_FAILURE);
}

/* The request. */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "" : value;
}

/* Moves a descriptor above the standard streams: if the runtime closed one, open() and socket() reuse its number. */
static int above_standard_streams(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)close(descriptor); /* no longer needed, even if F_DUPFD failed */
    return above;
}

static size_t read_environment(char *buffer)
{
    size_t used = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strncmp(*entry, "CNI_", 4) != 0 || strchr(*entry, '=') == NULL)
            continue;
        size_t size = strlen(*entry) + 1;
        if (size > ENVIRONMENT_LIMIT - used)
            fail(BAD_ENVIRONMENT, "CNI_ variables are longer than " TEXT(ENVIRONMENT_LIMIT) " bytes", NULL, *entry);
        memcpy(buffer + used, *entry, size);
        used += size;
    }
    return used;
}

static size_t read_input(char *buffer)
{
    size_t size = read_full(STDIN_FILENO, buffer, INPUT_LIMIT + 1, deadline_in(ANSWER_SECONDS));
    if (size > INPUT_LIMIT)
        fail(BAD_CONFIG, "network configuration is longer than " TEXT(INPUT_LIMIT) " bytes", NULL, NULL);
    if (errno != 0)
        fail(BAD_INPUT, "error reading from stdin", why("timed out after " TEXT(ANSWER_SECONDS) " s"), NULL);
    return size;
}

/* Opens CNI_NETNS, without blocking if it is a FIFO. Returns the value for the header. */
static int32_t open_netns(int *netns)
{
    const char *path = variable("CNI_NETNS");
    if (*path == '\0')
        return -1;
    do
        *netns = above_standard_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    while (*netns < 0 && errno == EINTR);
    return *netns < 0 ? errno : 0;
}

/* Assembles the request and returns its size. Sets `netns` to the descriptor of CNI_NETNS if it was opened. */
static size_t read_request(int *netns)
{
    size_t environment_size = read_environment(request.body);
    size_t input_size = read_input(request.body + environment_size);
    memcpy(request.header.magic, "cnid", sizeof request.header.magic);
    request.header.version = htobe16(PROTOCOL_VERSION);
    request.header.netns = (int32_t)htobe32((uint32_t)open_netns(netns));
    request.header.environment_size = htobe32((uint32_t)environment_size);
    request.header.input_size = htobe32((uint32_t)input_size);
    return sizeof request.header + environment_size + input_size;
}

/* The daemon. */

static const char *socket_path(void)
{
    const char *path = variable(SOCKET_VARIABLE);
    return *path != '\0' ? path : DEFAULT_SOCKET;
}

/* For STATUS, any failure of the daemon means that no ADD can be served. */
static _Noreturn void fail_daemon(enum code code, const char *cause)
{
    const char *message = code == TRY_AGAIN ? "contrail-cnid unavailable" : "contrail-cnid violates the protocol";
    bool is_status = strcmp(variable("CNI_COMMAND"), "STATUS") == 0;
    fail(is_status ? UNAVAILABLE : code, message, cause, socket_path());
}

/*
 * Connects; tries at least once. SO_SNDTIMEO limits the wait while the backlog is full. Unlike with TCP, a Unix connect() that a signal
 * interrupts has done nothing and can be repeated.
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
        if (!is_away(errno) || !pause_before(deadline))
            fail_daemon(TRY_AGAIN, why("connecting timed out after " TEXT(AWAY_SECONDS) " s"));
    return daemon;
}

/* Sends the request. A daemon may reject it and close before it has read all: then the response is read anyway. */
static void send_request(int daemon, size_t size, int netns, int64_t deadline)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof netns)];
    } control = {{.cmsg_len = CMSG_LEN(sizeof netns), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &netns, sizeof netns);
    struct iovec rest = {.iov_base = &request, .iov_len = size};
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

/* Returns a connection on which the daemon has acknowledged the request. */
static int request_daemon(size_t size, int netns)
{
    int64_t away = deadline_in(AWAY_SECONDS);
    for (;;) {
        int daemon = connect_daemon(away);
        int64_t deadline = deadline_in(ACKNOWLEDGE_SECONDS);
        send_request(daemon, size, netns, deadline);
        if (is_acknowledged(daemon, deadline))
            return daemon;
        if (!pause_before(away))
            fail_daemon(TRY_AGAIN, why(NULL));
        (void)close(daemon); /* nothing is lost with it */
    }
}

static _Noreturn void fail_incomplete(size_t got)
{
    if (got == 0 || errno == ETIME)
        fail_daemon(TRY_AGAIN, why("no response after " TEXT(ANSWER_SECONDS) " s"));
    fail_daemon(BAD_DAEMON, "truncated response");
}

/* Reads the response header and its output into `output`. */
static struct answer read_answer(int daemon, int64_t deadline)
{
    struct answer answer;
    size_t got = read_full(daemon, &answer, sizeof answer, deadline);
    if (got < sizeof answer)
        fail_incomplete(got);
    answer = (struct answer){.status = be32toh(answer.status), .size = be32toh(answer.size)};
    if (answer.status > 1)
        fail_daemon(BAD_DAEMON, "exit status is neither 0 nor 1");
    if (answer.size > OUTPUT_LIMIT)
        fail_daemon(BAD_DAEMON, "output is longer than " TEXT(OUTPUT_LIMIT) " bytes");
    if (read_full(daemon, output, answer.size, deadline) < answer.size)
        fail_incomplete(sizeof answer);
    char more;
    if (read(daemon, &more, sizeof more) > 0)
        fail_daemon(BAD_DAEMON, "output is longer than announced");
    return answer;
}

/* Forwards the call to the daemon; returns the exit status. */
static int hand_over(void)
{
    int netns = -1;
    size_t size = read_request(&netns);
    int daemon = request_daemon(size, netns);
    struct answer answer = read_answer(daemon, deadline_in(ANSWER_SECONDS));
    if (!print(output, answer.size))
        return EXIT_FAILURE;
    (void)send(daemon, "\1", 1, MSG_NOSIGNAL); /* the result is delivered, whether the receipt arrives or not */
    return (int)answer.status;
}

int main(void)
{
    const char *command = variable("CNI_COMMAND");
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail with this signal */
    if (*command == '\0') {
        complain(ABOUT);
        return EXIT_SUCCESS;
    }
    if (strcmp(command, "VERSION") == 0)
        return print(VERSION_DOCUMENT, strlen(VERSION_DOCUMENT)) ? EXIT_SUCCESS : EXIT_FAILURE;
    return hand_over();
}
