"""What distances tell: eccentricities, all pairs, paths to a target, order of acyclic graphs."""
