"""The operating system gives files, memory, cores, signals and processes; they are used here."""
