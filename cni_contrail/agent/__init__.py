"""Client of the node agent: HTTP requests, their deadlines, and notifications that are retried later."""
