"""The pages that the agent serves, each an `operation`: what it is, what it takes and answers, and what handles it.

The routes of the server and `/openapi.json` are both made of these operations, so neither can lack what the other has.
"""
