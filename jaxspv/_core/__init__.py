"""What everything stands on: pytrees, indices, compilation, batching, the choice of a backend."""
