"""The node agent's side of a call: what is asked over HTTP, how long, and what stock agents need besides."""
