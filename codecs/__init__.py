"""PCM in, encoded packets out: resampling, framing, Opus. Knows no sessions and no engines."""
