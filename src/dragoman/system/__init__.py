"""These modules use what the operating system gives: files, memory, cores, signals, processes."""
