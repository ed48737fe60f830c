"""What clients notice of upgrades, and what the next process knows of the last one's cache."""
