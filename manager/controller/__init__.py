"""Controllers that reconcile the config store with a source's pods and networks."""
