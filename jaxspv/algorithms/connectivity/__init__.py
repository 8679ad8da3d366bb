"""How a graph hangs together: strong components, cores, order, two sides."""
