/*
 * contrail-k8s-cni: hands one CNI call to contrail-cnid, the node's daemon, and prints its answer.
 *
 * A runtime starts a process for each call. This one starts in less than a millisecond, needs no library and no
 * interpreter on the node, and opens CNI_NETNS where the runtime's paths are valid, so that the daemon can live in a
 * container. It decides nothing but what the daemon cannot: VERSION, which is asked while no daemon runs, and what to
 * say when the daemon is missing, hangs, is restarted in the middle of a call, or answers nonsense.
 *
 * The protocol: one request for each connection, integers big-endian.
 *   to the daemon    header: "cnid", version u16, 0 u16, netns i32, environment length u32, configuration length u32;
 *                    environment: KEY=VALUE\0 for each CNI_ variable; configuration: standard input as it came.
 *                    netns is 0 (a descriptor comes with the first byte), an errno (opening it failed), -1 (none named)
 *   from the daemon  0x01 when the whole request was read, within ACKNOWLEDGE_SECONDS of connecting
 *   from the daemon  exit status u32, output length u32, output, within ANSWER_SECONDS of the acknowledgement
 *   to the daemon    0x01 when the output was written whole: without it the daemon takes an ADD back
 *
 * Memory is two static buffers, of which the kernel provides what is touched. Every wait has a deadline.
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
#define QUOTE_LIMIT 256 /* bytes of a text that an error repeats */
#define ACKNOWLEDGE_SECONDS 2
#ifndef ANSWER_SECONDS /* tests are built with less patience */
#define ANSWER_SECONDS 120
#endif

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define VERSIONS(separator) \
    "0.1.0" separator "0.2.0" separator "0.3.0" separator "0.3.1" separator "0.4.0" separator "1.0.0" separator "1.1.0"
#define VERSION_DOCUMENT "{\"cniVersion\": \"1.1.0\", \"supportedVersions\": [\"" VERSIONS("\", \"") "\"]}\n"
#define ABOUT                                                                \
    "contrail-k8s-cni attaches Kubernetes pods to Contrail virtual networks\n" \
    "CNI protocol versions supported: " VERSIONS(", ") "\n"

enum code { ENVIRONMENT_CODE = 4, INPUT_CODE = 5, CONFIG_CODE = 6, AGAIN_CODE = 11, STATUS_CODE = 50, DAEMON_CODE = 107 };
enum netns { ATTACHED = 0, NOT_NAMED = -1 }; /* more than 0: errno */

struct header {
    char magic[4];
    uint16_t version, reserved;
    int32_t netns;
    uint32_t environment_size, input_size;
};
_Static_assert(sizeof(struct header) == 20, "the header has no padding");

static struct {
    struct header header;
    char body[ENVIRONMENT_LIMIT + INPUT_LIMIT + 1]; /* one more, to see that the input goes on */
} request;

struct answer {
    uint32_t status, size;
};
static char output[OUTPUT_LIMIT];

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

/* Milliseconds that are left, 0 and errno ETIME if none are. */
static int time_left(int64_t deadline)
{
    int64_t left = deadline - milliseconds_now();
    errno = ETIME;
    return left > 0 ? (int)left : 0;
}

/* Waits until a descriptor is ready, or says so by its error; false and errno if the deadline came first. */
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

static bool must_repeat(ssize_t result)
{
    return result < 0 && (errno == EINTR || errno == EAGAIN);
}

/* Reads until the buffer is full. Returns how many bytes came: fewer with errno, which is 0 at the end of the input. */
static size_t read_full(int descriptor, void *buffer, size_t size, int64_t deadline)
{
    size_t got = 0;
    while (got < size && wait_for(descriptor, POLLIN, deadline)) {
        errno = 0;
        ssize_t count = read(descriptor, (char *)buffer + got, size - got);
        if (count > 0)
            got += (size_t)count;
        else if (!must_repeat(count))
            break;
    }
    return got;
}

/* Writes all of it. A pipe that is ready takes PIPE_BUF bytes without blocking, however slow its reader is. */
static bool write_full(int descriptor, const char *bytes, size_t size, int64_t deadline)
{
    while (size > 0) {
        if (!wait_for(descriptor, POLLOUT, deadline))
            return false;
        ssize_t count = write(descriptor, bytes, size < PIPE_BUF ? size : PIPE_BUF);
        if (count >= 0) {
            bytes += count;
            size -= (size_t)count;
        } else if (!must_repeat(count)) {
            return false;
        }
    }
    return true;
}

static void complain(const char *text)
{
    (void)write_full(STDERR_FILENO, text, strlen(text), deadline_in(ACKNOWLEDGE_SECONDS)); /* nobody else to tell */
}

/* Prints an answer; returns whether standard output took all of it. */
static bool print(const char *bytes, size_t size)
{
    if (write_full(STDOUT_FILENO, bytes, size, deadline_in(ANSWER_SECONDS)))
        return true;
    complain("contrail-k8s-cni: the answer cannot be delivered: ");
    complain(strerror(errno));
    complain("\n");
    return false;
}

/* Appends as the inside of a JSON string; what is not printable ASCII is shown as \xNN, so any bytes are valid. */
static char *quote(char *end, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < QUOTE_LIMIT && text[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool printable = byte >= ' ' && byte <= '~';
        if (!printable || byte == '"' || byte == '\\')
            *end++ = '\\';
        if (printable) {
            *end++ = text[i];
        } else {
            *end++ = '\\';
            *end++ = 'x';
            *end++ = digits[byte >> 4];
            *end++ = digits[byte & 15];
        }
    }
    return end;
}

static bool is_status(void)
{
    const char *command = getenv("CNI_COMMAND");
    return command != NULL && strcmp(command, "STATUS") == 0;
}

/* Answers with an error, "message: cause", and ends. Details may be NULL. */
static _Noreturn void fail(enum code code, const char *message, const char *cause, const char *details)
{
    static char line[3 * 5 * QUOTE_LIMIT + 128]; /* a quoted byte takes 5 at most */
    bool daemon_fails = code == AGAIN_CODE || code == DAEMON_CODE;
    if (daemon_fails && is_status())
        code = STATUS_CODE;
    int start = snprintf(line, sizeof line, "{\"cniVersion\": \"1.1.0\", \"code\": %u, \"msg\": \"", code);
    char *end = quote(line + start, message);
    end = stpcpy(end, ": ");
    end = quote(end, cause);
    if (details != NULL) {
        end = stpcpy(end, "\", \"details\": \"");
        end = quote(end, details);
    }
    end = stpcpy(end, "\"}\n");
    (void)print(line, (size_t)(end - line)); /* the exit status is the same */
    _exit(1);
}

static const char *socket_path(void)
{
    const char *path = getenv(SOCKET_VARIABLE);
    return path != NULL && *path != '\0' ? path : DEFAULT_SOCKET;
}

/* Why a wait failed, by errno: the deadline came, the other side closed (0), or an error. */
static const char *why(const char *too_late)
{
    return errno == ETIME ? too_late : errno == 0 ? "it closed the connection" : strerror(errno);
}

static _Noreturn void fail_daemon(enum code code, const char *cause)
{
    const char *message = code == DAEMON_CODE ? "contrail-cnid breaks the protocol" : "contrail-cnid does not answer";
    fail(code, message, cause, socket_path());
}

/* A standard stream that the runtime closed must not become a descriptor of ours. */
static int above_standard_streams(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    return fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Collects KEY=VALUE\0 of each CNI_ variable; returns their length. */
static size_t read_environment(char *buffer)
{
    size_t used = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strncmp(*entry, "CNI_", 4) != 0 || strchr(*entry, '=') == NULL)
            continue;
        size_t size = strlen(*entry) + 1;
        if (size > ENVIRONMENT_LIMIT - used)
            fail(ENVIRONMENT_CODE, "CNI_ variables are too large together", "at most " TEXT(ENVIRONMENT_LIMIT) " bytes", *entry);
        memcpy(buffer + used, *entry, size);
        used += size;
    }
    return used;
}

static size_t read_input(char *buffer)
{
    size_t size = read_full(STDIN_FILENO, buffer, INPUT_LIMIT + 1, deadline_in(ANSWER_SECONDS));
    if (size > INPUT_LIMIT)
        fail(CONFIG_CODE, "network configuration is too large", "at most " TEXT(INPUT_LIMIT) " bytes", NULL);
    if (errno != 0)
        fail(INPUT_CODE, "error reading from stdin", strerror(errno), NULL);
    return size;
}

/* Opens CNI_NETNS, if it is named; tells how that went. A path that leads to a pipe must not hold the call up. */
static int32_t open_netns(int *descriptor)
{
    const char *path = getenv("CNI_NETNS");
    if (path == NULL || *path == '\0')
        return NOT_NAMED;
    *descriptor = above_standard_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    return *descriptor < 0 ? errno : ATTACHED;
}

/* Connects; waits while the daemon's queue is full. An interrupted connect of a Unix socket has done nothing. */
static bool connect_until(int descriptor, const struct sockaddr_un *address, int64_t deadline)
{
    for (int left; (left = time_left(deadline)) > 0;) {
        struct timeval patience = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
        if (setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
            return false;
        if (connect(descriptor, (const struct sockaddr *)address, sizeof *address) == 0)
            return fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0;
        if (errno != EINTR && errno != EAGAIN)
            return false;
    }
    return false;
}

static int connect_daemon(int64_t deadline)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path()) >= sizeof address.sun_path)
        fail(ENVIRONMENT_CODE, SOCKET_VARIABLE, "is longer than the path of a socket can be", socket_path());
    memcpy(address.sun_path, socket_path(), strlen(socket_path()));
    int descriptor = above_standard_streams(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (descriptor < 0 || !connect_until(descriptor, &address, deadline))
        fail_daemon(AGAIN_CODE, why("it takes no call within " TEXT(ACKNOWLEDGE_SECONDS) " s"));
    return descriptor;
}

/* Sends a part of the request, with the descriptor if there is one. */
static ssize_t send_part(int daemon, void *bytes, size_t size, const int *netns)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = {{0}};
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (netns != NULL) {
        control.aligned.cmsg_len = CMSG_LEN(sizeof *netns);
        control.aligned.cmsg_level = SOL_SOCKET;
        control.aligned.cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(&control.aligned), netns, sizeof *netns);
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
    }
    return sendmsg(daemon, &message, MSG_NOSIGNAL);
}

/* Sends the request. A daemon that refuses it may answer and close before it has read all: that is for the reader. */
static void send_request(int daemon, size_t size, const int *netns, int64_t deadline)
{
    for (size_t sent = 0; sent < size && wait_for(daemon, POLLOUT, deadline);) {
        ssize_t count = send_part(daemon, (char *)&request + sent, size - sent, sent == 0 ? netns : NULL);
        if (count >= 0)
            sent += (size_t)count;
        else if (errno == EPIPE || errno == ECONNRESET)
            return;
        else if (!must_repeat(count))
            fail_daemon(AGAIN_CODE, strerror(errno));
    }
}

static void await_acknowledgement(int daemon, int64_t deadline)
{
    char byte = 0;
    if (read_full(daemon, &byte, sizeof byte, deadline) == 0)
        fail_daemon(AGAIN_CODE, why("no acknowledgement within " TEXT(ACKNOWLEDGE_SECONDS) " s"));
    if (byte != 1)
        fail_daemon(DAEMON_CODE, "its acknowledgement is none");
}

static _Noreturn void fail_incomplete(size_t got)
{
    if (got == 0 || errno == ETIME)
        fail_daemon(AGAIN_CODE, why("no answer within " TEXT(ANSWER_SECONDS) " s"));
    fail_daemon(DAEMON_CODE, "its answer breaks off");
}

static struct answer read_answer(int daemon, int64_t deadline)
{
    struct answer answer;
    size_t got = read_full(daemon, &answer, sizeof answer, deadline);
    if (got < sizeof answer)
        fail_incomplete(got);
    answer.status = be32toh(answer.status);
    answer.size = be32toh(answer.size);
    if (answer.status > 1)
        fail_daemon(DAEMON_CODE, "its exit status is neither 0 nor 1");
    if (answer.size > OUTPUT_LIMIT)
        fail_daemon(DAEMON_CODE, "its output is longer than " TEXT(OUTPUT_LIMIT) " bytes");
    if (read_full(daemon, output, answer.size, deadline) < answer.size)
        fail_incomplete(sizeof answer);
    char more;
    if (read(daemon, &more, sizeof more) > 0)
        fail_daemon(DAEMON_CODE, "its output is longer than it says");
    return answer;
}

/* Collects the request and returns its size; `netns` becomes the descriptor of CNI_NETNS, if it can be opened. */
static size_t read_request(int *netns)
{
    size_t environment_size = read_environment(request.body);
    size_t input_size = read_input(request.body + environment_size);
    request.header = (struct header){
        .magic = {'c', 'n', 'i', 'd'},
        .version = htobe16(PROTOCOL_VERSION),
        .netns = (int32_t)htobe32((uint32_t)open_netns(netns)),
        .environment_size = htobe32((uint32_t)environment_size),
        .input_size = htobe32((uint32_t)input_size),
    };
    return sizeof request.header + environment_size + input_size;
}

/* Has the daemon carry the call out; returns the exit status. */
static int hand_over(void)
{
    int netns = -1;
    size_t size = read_request(&netns);
    int64_t deadline = deadline_in(ACKNOWLEDGE_SECONDS);
    int daemon = connect_daemon(deadline);
    send_request(daemon, size, netns < 0 ? NULL : &netns, deadline);
    await_acknowledgement(daemon, deadline);
    struct answer answer = read_answer(daemon, deadline_in(ANSWER_SECONDS));
    if (!print(output, answer.size))
        return 1;
    (void)send(daemon, "\1", 1, MSG_NOSIGNAL); /* the answer is delivered, whether the daemon learns it or not */
    return (int)answer.status;
}

int main(void)
{
    const char *command = getenv("CNI_COMMAND");
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail with this signal */
    if (command == NULL || *command == '\0') {
        complain(ABOUT);
        return 0;
    }
    if (strcmp(command, "VERSION") == 0)
        return print(VERSION_DOCUMENT, strlen(VERSION_DOCUMENT)) ? 0 : 1;
    return hand_over();
}
