"""Upgrades: what clients notice of them, and what the next process knows of the last one's cache."""
