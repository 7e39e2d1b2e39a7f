#define _GNU_SOURCE
#include "pin.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "streams.h"

#define DIRECTORY "/run/netns"
#define PREFIX "contrail-"
#ifndef LOCK_SECONDS /* each owner needs milliseconds; tests build with a shorter time */
#define LOCK_SECONDS 3
#endif
#define LOCK_PAUSE 1 /* milliseconds between two attempts */
#define NS_GET_NSTYPE _IO(0xb7, 0x3) /* ioctl_ns(2) */

bool is_network_name(const char *name)
{
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return false;
    const char *number = name + strlen(PREFIX);
    return *number != '\0' && *number != '0' && strspn(number, "0123456789") == strlen(number);
}

bool is_network_namespace(int descriptor)
{
    return ioctl(descriptor, NS_GET_NSTYPE) == CLONE_NEWNET;
}

/*
 * Enters the mount namespace of process 1, if that is another one: Multus thick runs plugins in its own container,
 * whose mounts the host does not see. Where it cannot be entered, this one is used; the daemon sees whether that was
 * right.
 */
static void enter_host(void)
{
    int host = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (host < 0)
        return;
    (void)setns(host, CLONE_NEWNS);
    (void)close(host);
}

/* Locks the directory as `ip netns` does: two mounts on one path would outlive a deletion. */
static bool lock(int directory)
{
    int64_t deadline = deadline_in(LOCK_SECONDS);
    while (flock(directory, LOCK_EX | LOCK_NB) != 0)
        if ((errno != EWOULDBLOCK && errno != EINTR) || !pause_before(LOCK_PAUSE, deadline))
            return false;
    return true;
}

/* Creates the file if needed; returns 0 with `is_bound`, whether a namespace is bound to it already, or an errno. */
static int create_entry(int directory, const char *name, bool *is_bound)
{
    int entry = openat(directory, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0444);
    if (entry < 0)
        return errno;
    *is_bound = is_network_namespace(entry);
    (void)close(entry);
    return 0;
}

static int bind_entry(const char *name, int netns)
{
    char source[sizeof "/proc/self/fd/" + 10], target[sizeof DIRECTORY + 1 + PIN_NAME_LIMIT];
    (void)sprintf(source, "/proc/self/fd/%d", netns);
    (void)sprintf(target, DIRECTORY "/%s", name);
    return mount(source, target, NULL, MS_BIND, NULL) == 0 ? 0 : errno;
}

int pin_namespace(const char *name, int netns)
{
    enter_host();
    int directory = open(DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return errno;
    bool is_bound = false;
    int error = lock(directory) ? create_entry(directory, name, &is_bound) : errno;
    if (error == 0 && !is_bound)
        error = bind_entry(name, netns);
    (void)close(directory); /* ends the lock */
    return error;
}
