"""Live part of `contrailctl check connectivity`: temporary pods that reach each other, and what they must not reach."""
