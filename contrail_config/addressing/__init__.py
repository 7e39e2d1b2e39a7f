"""Address selection in subnets: pure, without I/O, shared by the stores that do their own IPAM.

A store records owners and enforces uniqueness; this package only selects. The entry point is `AddressPool`.
"""
