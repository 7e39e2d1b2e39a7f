#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

static int64_t milliseconds_now(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t deadline_in(int seconds)
{
    return milliseconds_now() + (int64_t)seconds * 1000;
}

int time_left(int64_t deadline)
{
    int64_t left = deadline - milliseconds_now();
    errno = ETIME;
    return left > 0 ? (int)left : 0;
}

bool wait_for(int descriptor, short event, int64_t deadline)
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

bool pause_before(int milliseconds, int64_t deadline)
{
    int error = errno;
    int left = time_left(deadline);
    if (left > 0)
        (void)poll(NULL, 0, left < milliseconds ? left : milliseconds); /* if a signal ends it early, no harm is done */
    errno = error;
    return left > 0;
}

bool is_passing(int error)
{
    return error == EINTR || error == EAGAIN;
}

size_t read_full(int descriptor, void *buffer, size_t size, int64_t deadline)
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

/* A pipe that polls writable takes PIPE_BUF bytes without blocking, so the deadline holds. */
bool write_full(int descriptor, const char *bytes, size_t size, int64_t deadline)
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

int above_standard_streams(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)close(descriptor); /* no longer needed, even if F_DUPFD failed */
    return above;
}
