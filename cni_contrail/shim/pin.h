/*
 * Pins network namespaces of virtual networks on the host: binds them to /run/netns/contrail-<vni>.
 *
 * A namespace lives as long as something holds it. A daemon in a container cannot leave a mount on its host, so what it
 * creates would go with it, and its pods' traffic. This process is where the runtime is: on the host.
 */
#ifndef PIN_H
#define PIN_H

#include <stdbool.h>

#define PIN_NAME_LIMIT 17 /* bytes: a VNI has 24 bits */

/* Whether this is the name of a network's namespace: contrail-<vni>. */
bool is_network_name(const char *name);

bool is_network_namespace(int descriptor);

/*
 * Binds the namespace to its name, unless a namespace is bound there already: that one is the network's. Returns 0 or
 * an errno. May be killed at any moment: what it leaves is as before, a file without a mount, or the result.
 */
int pin_namespace(const char *name, int netns);

#endif
