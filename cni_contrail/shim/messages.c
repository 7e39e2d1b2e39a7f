#define _GNU_SOURCE
#include "messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol.h"
#include "streams.h"

#define QUOTE_LIMIT 256 /* bytes of a value in an error message */

void complain(const char *text)
{
    /* Best effort: there is no other place to report that this failed. */
    (void)write_full(STDERR_FILENO, text, strlen(text), deadline_in(ACKNOWLEDGE_SECONDS));
}

const char *why(const char *too_late)
{
    return errno == ETIME ? too_late : errno == 0 ? "connection closed" : strerror(errno);
}

bool print(const char *bytes, size_t size)
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

_Noreturn void fail(enum code code, const char *message, const char *cause, const char *details)
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
