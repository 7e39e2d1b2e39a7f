#define _GNU_SOURCE
#include "request.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"
#include "protocol.h"
#include "streams.h"

static struct {
    struct request_header header;
    char body[ENVIRONMENT_LIMIT + INPUT_LIMIT + 1]; /* one more, to detect longer input */
} request;

const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "" : value;
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

char *read_request(size_t *size, int *netns)
{
    size_t environment_size = read_environment(request.body);
    size_t input_size = read_input(request.body + environment_size);
    memcpy(request.header.magic, "cnid", sizeof request.header.magic);
    request.header.version = htobe16(PROTOCOL_VERSION);
    request.header.netns = (int32_t)htobe32((uint32_t)open_netns(netns));
    request.header.environment_size = htobe32((uint32_t)environment_size);
    request.header.input_size = htobe32((uint32_t)input_size);
    *size = sizeof request.header + environment_size + input_size;
    return (char *)&request;
}
