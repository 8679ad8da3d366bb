"""Built on distances: eccentricities, all pairs, paths to a target, order of acyclic graphs."""
