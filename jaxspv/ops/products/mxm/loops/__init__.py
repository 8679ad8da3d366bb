"""Native loops of a CPU: Gustavson's algorithm, the masked one, the derivatives of both."""
