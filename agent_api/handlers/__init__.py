"""HTTP handlers of the agent. Each endpoint is an `operation`: path, parameters, bodies and handler.

Routes and `/openapi.json` are both derived from the operations, so they cannot diverge.
"""
