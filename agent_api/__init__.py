"""vRouter agent adapter: serves each pod's interfaces over HTTP, wire-compatible with the Contrail vrouter agent.

Two data flows meet here. `virtual_machine_watch` copies this node's VirtualMachines from the config store into
`virtual_machine_index`, which `GET /vm-cfg` is answered from. Ports that clients plug by `POST /vm` and `POST /port`
are persisted as files by `ports`.

`handlers` are the HTTP endpoints over both, `fast_path` answers the plugin's own requests without aiohttp's overhead,
and `node` reports the state of the node to the cluster. A process creates a `node_agent.NodeAgent`, serves
`application.agent_application` on as many listeners as it needs, and runs the agent.
"""
