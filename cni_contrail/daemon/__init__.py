"""Node daemon `contrail-cnid`: serves the calls that the native shim forwards.

It runs the same function as the entry point (`cni_contrail.plugin.respond`), one thread per call. Only the execution
context differs: the request carries the opened sandbox, connections to the agent are kept open, and the daemon notices
when a runtime hangs up. `protocol` describes what is sent over the socket.
"""
