"""vRouter agent adapter: serves each pod's interface list over HTTP, wire-compatible with the original agent.

Two things meet here. The machines of this node come from the config store (`machine_watch` into `machines`) and are
answered at `/vm-cfg`; the ports that clients have plugged come by `POST /vm` and `POST /port` and are kept as files
(`ports`). What is served, and what for, is in `pages`; what a cluster is told of the node, in `node`. Whoever composes
a process makes an `agent.Agent`, serves `application.agent_application` on the addresses it likes, and runs it.
"""
