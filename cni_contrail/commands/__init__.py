"""One module per command of the CNI specification, each a recipe; and what they share."""
