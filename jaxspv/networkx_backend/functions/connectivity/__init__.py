"""How a graph hangs together: components, cores, trees, sides."""
