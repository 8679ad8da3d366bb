"""What networks learn, beside those of other libraries: `run(workload, options)` gives records."""
