"""Turns written text into the words an engine speaks, and keeps track of where each word came from."""
