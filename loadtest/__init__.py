"""Load generation against a running server. Knows the client, not the server."""
