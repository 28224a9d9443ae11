"""The wires of other services, so that their clients need another address and nothing else. Each is a dialect."""
