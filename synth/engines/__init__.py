"""The engines: one file each, imported only by the worker process that runs it."""
