"""What graph neural networks add: attention, normalisation, batching, sampling."""
