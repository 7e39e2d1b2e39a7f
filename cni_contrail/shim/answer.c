#define _GNU_SOURCE
#include "answer.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "daemon.h"
#include "protocol.h"
#include "streams.h"

static char output[OUTPUT_LIMIT];

static _Noreturn void fail_incomplete(size_t got)
{
    if (got == 0 || errno == ETIME)
        fail_daemon(TRY_AGAIN, why("no response after " TEXT(ANSWER_SECONDS) " s"));
    fail_daemon(BAD_DAEMON, "truncated response");
}

struct answer read_answer(int daemon)
{
    int64_t deadline = deadline_in(ANSWER_SECONDS);
    struct answer_header header;
    size_t got = read_full(daemon, &header, sizeof header, deadline);
    if (got < sizeof header)
        fail_incomplete(got);
    header = (struct answer_header){.status = be32toh(header.status), .size = be32toh(header.size)};
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
