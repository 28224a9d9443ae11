"""Connections, sessions, the wire, pacing, HTTP and the command line. Knows no models, no tensors, no libopus."""
