"""Speech that need not be computed again: pinned phrases, this process's memory, Redis."""
