"""The web page of the manager: shows networks, pods and nodes in a browser, from the read-only API."""
