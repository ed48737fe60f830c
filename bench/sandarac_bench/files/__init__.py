"""`bench/files`: files of a directory, served beside nginx and Apache."""
