"""Here stands what the operating system gives: files, memory, cores, signals and processes."""
