"""Applications to tables and streams; nothing outside this folder depends on it."""
