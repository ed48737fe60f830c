"""Slow clients: what they take from fast ones, and from the memory."""
