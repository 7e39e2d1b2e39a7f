"""vRouter agent adapter: serves each pod's interface list over HTTP, wire-compatible with the original agent."""
