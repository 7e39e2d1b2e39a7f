"""CNI commands: one module per command of the specification, and the steps that they share."""
