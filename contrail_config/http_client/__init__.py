"""What HTTP clients of API servers share: sockets, texts of connection errors, and shared runs of one function."""
