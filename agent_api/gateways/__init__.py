"""Simple gateways: devices of this node through which a virtual network reaches the outside.

Clients add and delete them by `/gateway` as with upstream's agent. Here they are kept and listed; traffic flows through
one only where a vrouter is told of it, which is not done here.
"""
