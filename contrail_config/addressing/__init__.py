"""Which address of a subnet comes next: pure, without I/O, shared by the stores that allocate for themselves.

A store keeps who has which address, and keeps it unique; here is only the choice. `AddressPool` is the way in.
"""
