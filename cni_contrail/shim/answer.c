#define _GNU_SOURCE
#include "answer.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"
#include "pin.h"
#include "protocol.h"
#include "request.h"
#include "streams.h"

static char output[OUTPUT_LIMIT];

static _Noreturn void fail_incomplete(size_t got)
{
    if (got == 0 || errno == ETIME)
        fail_daemon(TRY_AGAIN, why("no response after " TEXT(ANSWER_SECONDS) " s"));
    fail_daemon(BAD_DAEMON, "truncated response");
}

/*
 * Reads the first bytes of a header, with the descriptor that may come with them, or -1. The kernel closes further
 * descriptors: the buffer has space for one.
 */
static size_t read_first(int daemon, struct answer_header *header, int *descriptor, int64_t deadline)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof *descriptor)];
    } control;
    struct iovec bytes = {.iov_base = header, .iov_len = sizeof *header};
    while (wait_for(daemon, POLLIN, deadline)) {
        struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
        message.msg_control = &control;
        message.msg_controllen = CMSG_LEN(sizeof *descriptor);
        errno = 0;
        ssize_t count = recvmsg(daemon, &message, MSG_CMSG_CLOEXEC);
        if (count < 0 && is_passing(errno))
            continue;
        struct cmsghdr *received = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
        *descriptor = -1;
        if (received != NULL && received->cmsg_type == SCM_RIGHTS)
            memcpy(descriptor, CMSG_DATA(received), sizeof *descriptor);
        return count > 0 ? (size_t)count : 0;
    }
    return 0;
}

static struct answer_header read_header(int daemon, int *descriptor, int64_t deadline)
{
    struct answer_header header;
    size_t got = read_first(daemon, &header, descriptor, deadline);
    if (got > 0)
        got += read_full(daemon, (char *)&header + got, sizeof header - got, deadline);
    if (got < sizeof header)
        fail_incomplete(got);
    return (struct answer_header){.status = be32toh(header.status), .size = be32toh(header.size)};
}

/* Pins the namespace, and replies with the errno. Without a reply, the daemon sees that we are gone. */
static void serve_pin(int daemon, uint32_t size, int netns, int64_t deadline)
{
    char name[PIN_NAME_LIMIT + 1] = {0};
    if (strcmp(variable("CNI_COMMAND"), "ADD") != 0)
        fail_daemon(BAD_DAEMON, "asks to pin a namespace without an ADD");
    if (size > PIN_NAME_LIMIT)
        fail_daemon(BAD_DAEMON, "name of a namespace is too long");
    if (read_full(daemon, name, size, deadline) < size)
        fail_incomplete(sizeof(struct answer_header));
    if (!is_network_name(name) || strlen(name) != size || !is_network_namespace(netns))
        fail_daemon(BAD_DAEMON, "asks to pin what is not the namespace of a network");
    uint32_t reply = htobe32((uint32_t)pin_namespace(name, netns));
    (void)close(netns);
    (void)send(daemon, &reply, sizeof reply, MSG_NOSIGNAL);
}

struct answer read_answer(int daemon)
{
    int64_t deadline = deadline_in(ANSWER_SECONDS);
    int descriptor;
    struct answer_header header;
    while ((header = read_header(daemon, &descriptor, deadline)).status == PIN)
        serve_pin(daemon, header.size, descriptor, deadline);
    if (descriptor >= 0)
        (void)close(descriptor); /* not asked for */
    if (header.status > 1)
        fail_daemon(BAD_DAEMON, "exit status is neither 0 nor 1");
    if (header.size > OUTPUT_LIMIT)
        fail_daemon(BAD_DAEMON, "output is longer than " TEXT(OUTPUT_LIMIT) " bytes");
    if (read_full(daemon, output, header.size, deadline) < header.size)
        fail_incomplete(sizeof header);
    char more;
    if (read(daemon, &more, sizeof more) > 0)
        fail_daemon(BAD_DAEMON, "output is longer than announced");
    return (struct answer){.status = header.status, .size = header.size, .output = output};
}
