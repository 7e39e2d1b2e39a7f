"""What the agent tells of its node: `reporter` writes the report, `unplugged` and `errors` note what goes into it.

Each note is one of `notes`: a few, for a while.
"""
