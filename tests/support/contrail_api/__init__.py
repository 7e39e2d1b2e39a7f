"""Double of the Contrail API server: real HTTP, objects in memory, its error texts, and races on demand.

The suite in `tests/contrail_config/vnc/api_contract` holds it to what was measured on a real server. It has the types
that a store needs, no RBAC beyond a valid token, and no schema validation but that of values a store may get wrong.
"""
