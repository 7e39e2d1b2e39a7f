"""The node daemon, `contrail-cnid`: answers the calls that the native shim hands over.

It runs the very functions that the entry point runs (`cni_contrail.plugin.respond`), each call in a thread of its own.
What differs is what a call has around it: the opened sandbox comes with the request, connections to the agent stay
open, and a runtime that hangs up is noticed. `protocol` says what goes over the socket.
"""
