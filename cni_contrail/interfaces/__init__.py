"""From what the agent serves to what shall be in the kernel: reading, choosing, naming, planning. No I/O."""
