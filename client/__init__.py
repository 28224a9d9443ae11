"""The public Python client of the wire `voxgate.v1` (asyncio). Imports nothing of the server."""
