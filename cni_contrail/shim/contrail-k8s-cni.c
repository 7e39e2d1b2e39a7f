/*
 * contrail-k8s-cni: native shim, forwards one CNI call to the node daemon contrail-cnid and prints its response.
 *
 * A runtime starts a process per call. This one starts in a tenth of a millisecond, needs no library and no
 * interpreter on the node, and runs where the runtime does: it opens CNI_NETNS, and pins namespaces of networks, so
 * the daemon can run in a container. Otherwise it handles only what the daemon cannot: VERSION, which runtimes call
 * while no daemon runs, and errors when the daemon is missing, hangs, restarts in the middle of a call, or sends an
 * invalid response.
 *
 * All memory is static; the kernel provides only the pages that are used. Every wait has a deadline.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "answer.h"
#include "daemon.h"
#include "messages.h"
#include "request.h"

#define VERSIONS(separator) \
    "0.1.0" separator "0.2.0" separator "0.3.0" separator "0.3.1" separator "0.4.0" separator "1.0.0" separator "1.1.0"
#define VERSION_DOCUMENT "{\"cniVersion\": \"1.1.0\", \"supportedVersions\": [\"" VERSIONS("\", \"") "\"]}\n"
#define ABOUT                                                                  \
    "contrail-k8s-cni attaches Kubernetes pods to Contrail virtual networks\n" \
    "CNI protocol versions supported: " VERSIONS(", ") "\n"

/* Forwards the call to the daemon; returns the exit status. */
static int hand_over(void)
{
    int netns = -1;
    size_t size = 0;
    char *request = read_request(&size, &netns);
    int daemon = request_daemon(request, size, netns);
    struct answer answer = read_answer(daemon);
    if (!print(answer.output, answer.size))
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
