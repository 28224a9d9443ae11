"""voxgate: a self-hosted real-time voice gateway. Text streams in over a WebSocket, Opus voice streams out."""

__version__ = "0.1.0"
