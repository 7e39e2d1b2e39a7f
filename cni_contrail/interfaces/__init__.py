"""From the agent's list of interfaces to plans: parsing, selection, naming, planning. No I/O."""
