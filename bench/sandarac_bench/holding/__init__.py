"""What clients can make the process hold, and who is served meanwhile."""
