"""Simple gateways: devices of this node through which a virtual network reaches external networks.

Clients add and delete them by `/gateway`, as with the Contrail vrouter agent. Here they are only stored and listed; the
vrouter is not programmed, so no traffic flows through them.
"""
