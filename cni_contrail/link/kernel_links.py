"""Names of the links that the kernel makes in every network namespace, and removes with it.

There is one for each kind of tunnel whose module is loaded, such as `tunl0` where Calico uses IP-in-IP; some kernels
have these kinds built in (`fb_tunnels_only_for_init_net` in Documentation/admin-guide/sysctl/net.rst of Linux).
"""

from __future__ import annotations

KERNEL_LINKS = frozenset(("tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"))
"""Besides the loopback."""
