"""Node daemon `contrail-cnid`: serves the calls that the native shim forwards.

It runs the same function as the entry point (`cni_contrail.plugin.respond`), each call in one thread. Only the
execution context differs: the request carries the opened sandbox, connections to the agent are kept open, and the
daemon notices when a runtime hangs up. `protocol` describes what is sent over the socket; from there a request goes
from the `receiver` to the `connection_handler`, a `call_queue`, and a thread of the `workers`.
"""
